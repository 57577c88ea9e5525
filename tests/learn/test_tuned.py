"""What tuning learnt of one application, by access pattern."""

import pytest

from penstock.learn.tuned import ENOUGH, MOST_VALUES, TunedValues, pattern_of
from penstock.model import Context

WRITE = Context(operation="write", pattern="shared-strided", size=65536, load=4)
READ = Context(operation="read", pattern="shared-strided", size=65536, load=4)
DEPTHS = (2, 8, 32)


def learnt(*rates: tuple[int, float], context: Context = WRITE) -> TunedValues:
    tuned = TunedValues()
    for depth, rate in rates:
        tuned = tuned.plus(context, "depth", depth, rate)
    return tuned


def test_an_estimate_is_the_mean_of_its_intervals() -> None:
    (estimate,) = learnt((8, 10.0), (8, 20.0), (8, 60.0)).estimates[pattern_of(WRITE)]["depth"]
    assert (estimate.value, estimate.intervals) == (8, 3)
    assert estimate.rate == pytest.approx(30.0)


def test_the_best_value_is_known_once_two_were_tried_often_enough() -> None:
    tuned = learnt(*[(8, 10.0)] * ENOUGH, *[(32, 20.0)] * (ENOUGH - 1), (2, 90.0))
    assert tuned.best(pattern_of(WRITE), "depth", DEPTHS) is None
    tuned = tuned.plus(WRITE, "depth", 32, 20.0)
    assert tuned.best(pattern_of(WRITE), "depth", DEPTHS) == 32
    assert tuned.best(pattern_of(WRITE), "depth", (2, 8)) is None  # 32 is no longer a candidate
    assert tuned.best(pattern_of(WRITE), "window", DEPTHS) is None


def test_each_pattern_has_its_own() -> None:
    tuned = learnt(*[(8, 10.0), (32, 20.0)] * ENOUGH)
    for _ in range(2 * ENOUGH):
        tuned = tuned.plus(READ, "depth", 8, 50.0).plus(READ, "depth", 32, 40.0)
    assert tuned.best(pattern_of(WRITE), "depth", DEPTHS) == 32
    assert tuned.best(pattern_of(READ), "depth", DEPTHS) == 8
    assert tuned.usual("shared-strided") == "read shared-strided"
    assert tuned.usual("file-per-process") is None
    assert TunedValues().usual(None) is None


def test_values_are_bounded_and_the_newest_stay() -> None:
    tuned = learnt(*((depth, 1.0) for depth in range(100)))
    kept = [each.value for each in tuned.estimates[pattern_of(WRITE)]["depth"]]
    assert kept == list(range(100 - MOST_VALUES, 100))
