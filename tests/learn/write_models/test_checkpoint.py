"""Checkpoint intervals: the equations, and that each is what it claims to be."""

import math

import pytest

from penstock.errors import InputError
from penstock.learn.write_models import checkpoint


def test_a_budget_is_met_exactly() -> None:
    interval = checkpoint.for_budget(30.0, 0.1, 6 * 3600.0)
    assert interval.seconds == pytest.approx(270.0), "30 s of every 300"
    assert interval.cost == pytest.approx(0.1)
    assert interval.checkpoints == 80


def waste(interval: float, write: float, mtbf: float) -> float:
    """Return Daly's expected run time for a second of work, restarts free (2006, Eq. 20)."""
    return mtbf * math.expm1((interval + write) / mtbf) / interval


@pytest.mark.parametrize(("write", "mtbf"), [(60.0, 86400.0), (600.0, 3600.0), (5.0, 1e6)])
def test_failures_waste_the_least_there(write: float, mtbf: float) -> None:
    best = checkpoint.for_failures(write, mtbf).seconds
    least = min(waste(best * k / 1000, write, mtbf) for k in range(200, 5000))
    assert waste(best, write, mtbf) == pytest.approx(least, rel=1e-3)


def test_for_rare_failures_it_is_youngs() -> None:
    young = math.sqrt(2 * 1.0 * 1e8)
    assert checkpoint.for_failures(1.0, 1e8).seconds == pytest.approx(young, rel=1e-3)


def test_checkpoints_that_outlast_the_machine_are_dalys_second_case() -> None:
    assert checkpoint.for_failures(300.0, 100.0).seconds == 100.0


@pytest.mark.parametrize("budget", [0.0, 1.0, -0.1, math.nan])
def test_an_impossible_budget_is_refused(budget: float) -> None:
    with pytest.raises(InputError, match="budget"):
        checkpoint.for_budget(30.0, budget)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan])
def test_impossible_times_are_refused(wrong: float) -> None:
    with pytest.raises(InputError):
        checkpoint.for_failures(30.0, wrong)
    with pytest.raises(InputError):
        checkpoint.for_budget(wrong, 0.1)
    with pytest.raises(InputError):
        checkpoint.for_budget(30.0, 0.1, wrong)
