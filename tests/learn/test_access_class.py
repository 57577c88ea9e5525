"""The class of an application, and the prior that others of its class make for it."""

import pytest

from penstock.learn.access_class import AccessClass, ClassCurve
from penstock.learn.imported import Imported
from penstock.learn.knowledge import Knowledge
from penstock.learn.observations import History, ObservedPhase, Spread

LARGE = AccessClass(pattern="shared-strided", size="large")


@pytest.mark.parametrize(
    ("size", "expected"),
    [(4096, "small"), (131071, "small"), (131072, "medium"), (2**20, "large"), (2**26, "large")],
)
def test_a_class_is_a_pattern_and_a_size_of_requests(size: int, expected: str) -> None:
    made = AccessClass.of("shared-strided", size)
    assert made is not None
    assert (made.pattern, made.size) == ("shared-strided", expected)


@pytest.mark.parametrize(
    ("pattern", "size"), [("unknown", 4096), (None, 4096), ("shared-strided", None)]
)
def test_without_a_pattern_or_a_size_there_is_no_class(
    pattern: str | None, size: int | None
) -> None:
    assert AccessClass.of(pattern, size) is None


def test_the_curve_of_a_class_is_the_median_of_curves_divided_by_one_bandwidth() -> None:
    """All three have 1: b(2)/b(1) is 2, 1.5 and 1; b(4)/b(1) is 4, of one of them."""
    curves = [{1: 10.0, 2: 20.0, 4: 40.0}, {1: 100.0, 2: 150.0}, {1: 1.0, 2: 1.0}]
    made = ClassCurve.of(LARGE, curves)
    assert made is not None
    assert {n: part.median for n, part in made.shape.items()} == {1: 1.0, 2: 1.5, 4: 4.0}
    assert (made.bandwidth, made.applications) == (10.0, 3)
    points = made.points({})
    assert {n: point.median for n, point in points.items()} == {1: 10.0, 2: 15.0, 4: 40.0}
    assert points[2].low == pytest.approx(12.5)
    assert points[2].high == pytest.approx(17.5)
    assert {point.observations for point in points.values()} == {0}


def test_one_point_has_no_shape() -> None:
    assert ClassCurve.of(LARGE, []) is None
    assert ClassCurve.of(LARGE, [{1: 10.0}, {4: 20.0}]) is None


def observed(**bandwidths: float) -> Knowledge:
    """An application that was alone once with each number: `_2` is two I/O nodes."""
    history = History()
    for name, bandwidth in bandwidths.items():
        phase = ObservedPhase(bytes=round(bandwidth), seconds=1.0, alone=True)
        history = history.plus(int(name[1:]), phase)
    return Knowledge(history=history, prior=ClassCurve.of(LARGE, [{1: 100.0, 2: 150.0, 4: 200.0}]))


def test_a_prior_stands_in_while_nothing_is_known() -> None:
    known = observed()
    assert known.bandwidths == {1: 100.0, 2: 150.0, 4: 200.0}
    assert (known.source, known.prior_counts) == ("prior", [1, 2, 4])


def test_a_prior_never_overrides_an_observed_point_and_is_scaled_to_it() -> None:
    """b(2) was observed at 300, twice that of the class: so are b(1) and b(4)."""
    known = observed(_2=300.0)
    assert known.bandwidths == {1: 200.0, 2: 300.0, 4: 400.0}
    assert (known.source, known.prior_counts) == ("observed and prior", [1, 4])
    assert known.curve[2] == Spread(median=300.0, low=300.0, high=300.0, observations=1)


def test_two_points_of_its_own_need_no_prior() -> None:
    known = observed(_1=50.0, _2=90.0)
    assert known.bandwidths == {1: 50.0, 2: 90.0}
    assert (known.source, known.prior_counts) == ("observed", [])
    imported = Knowledge(imported=Imported(curve={1: 1.0, 2: 2.0}), prior=observed().prior)
    assert imported.source == "imported"


def test_a_point_at_a_number_that_the_class_lacks_is_no_scale() -> None:
    known = observed(_8=300.0)
    assert known.bandwidths == {8: 300.0}
    assert known.source == "observed"
