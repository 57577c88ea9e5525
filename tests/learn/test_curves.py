"""A job by its class: what is kept of its curve, and what is learnt of the others'."""

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.learn.curves import ClassCurves
from penstock.model import Curve
from penstock.sim.generators.io_resources import mn4_curves

COUNTS = (1, 2, 4, 8)


def curve(*values: float) -> Curve:
    return Curve.of(dict(zip(COUNTS, values, strict=True)))


def test_with_four_counts_a_class_is_the_mean_of_its_normalised_curves() -> None:
    known = [curve(10.0, 20.0, 30.0, 40.0), curve(300.0, 400.0, 900.0, 1000.0)]
    learnt = ClassCurves.fit(known)
    mean = np.mean([[0.25, 0.5, 0.75, 1.0], [0.3, 0.4, 0.9, 1.0]], axis=0)
    assert learnt.parts("ascent", COUNTS) == pytest.approx(mean)
    assert learnt.approximate(known[1]).at(COUNTS) == pytest.approx(1000 * mean)


def test_the_fit_is_least_squares() -> None:
    """A line through (1, 0.2), (2, 0.5), (4, 0.8), (8, 1): its residuals sum to nothing."""
    learnt = ClassCurves.fit([curve(2.0, 5.0, 8.0, 10.0)], degree=1)
    off = learnt.polynomials["ascent"](np.array(COUNTS)) - [0.2, 0.5, 0.8, 1.0]
    assert off.sum() == pytest.approx(0)
    assert (off * COUNTS).sum() == pytest.approx(0)


def test_the_189_curves_keep_their_best_count_but_for_peaks_and_flat_ones() -> None:
    """Paper io-resources, VI-B: best-bandwidth is wrong for some of those two classes only."""
    learnt = ClassCurves.fit(mn4_curves())
    wrong = {"ascent": 0, "descent": 0, "peak": 0, "neutral": 0}
    for known in mn4_curves():
        guess = learnt.approximate(known)
        wrong[known.shape()] += int(np.argmax(guess.bandwidths) != np.argmax(known.bandwidths))
    assert wrong["ascent"] == wrong["descent"] == 0
    assert 0 < wrong["peak"] < 40


def test_approximations_stay_positive() -> None:
    steep = [curve(1000.0, 1.0, 1.0, 1.0), curve(1000.0, 900.0, 1.0, 1.0)]
    for degree in (1, 2, 3):
        for known in steep:
            assert min(ClassCurves.fit(steep, degree).approximate(known).bandwidths) >= 10.0


def test_a_class_nobody_was_seen_of() -> None:
    with pytest.raises(InputError, match="no curve of the class peak"):
        ClassCurves.fit([curve(1.0, 2.0, 3.0, 4.0)]).approximate(curve(1.0, 9.0, 3.0, 4.0))


def test_other_ways_to_make_one_curve_of_a_class() -> None:
    """As parts of b(1), and literally the same function for all jobs of a class: their mean."""
    known = [curve(2.0, 5.0, 8.0, 10.0), curve(10.0, 15.0, 20.0, 40.0)]
    literal = ClassCurves.fit(known, scale="none")
    for one in known:
        assert literal.approximate(one).bandwidths == pytest.approx((6.0, 10.0, 14.0, 25.0))
    first = ClassCurves.fit(known, scale="first").approximate(known[0]).bandwidths
    assert first == pytest.approx((2.0, 2 * (2.5 + 1.5) / 2, 2 * (4 + 2) / 2, 2 * (5 + 4) / 2))
