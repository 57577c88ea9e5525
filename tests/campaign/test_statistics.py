"""Intervals hold as often as they say, also for few workloads."""

import math
import tracemalloc

import numpy as np
import pytest

from penstock.campaign.statistics import Estimate, bootstrap, paired_gain

TRIALS = 600


@pytest.mark.parametrize("workloads", [2, 3, 5, 8, 20])
def test_the_interval_of_a_paired_gain_covers_the_truth_in_95_of_100_cases(workloads: int) -> None:
    """The true gain is 3%; workloads differ far more than policies do on one workload."""
    rng = np.random.default_rng(workloads)
    covered = 0
    for _ in range(TRIALS):
        base = rng.normal(0.9, 0.05, workloads)
        ours = base * (1.03 + rng.normal(0, 0.02, workloads))
        gain = paired_gain(ours, base, higher_is_better=True)
        covered += gain.low <= 0.03 <= gain.high
    # Three standard deviations of a share of 0.95 in 600 trials are 0.027.
    assert covered / TRIALS == pytest.approx(0.95, abs=0.03)


def test_percentiles_of_few_workloads_are_too_narrow() -> None:
    """Why comparisons use Student's t."""
    rng = np.random.default_rng(5)
    samples = [rng.normal(5, 2, 5) for _ in range(TRIALS)]
    for interval, expected in (("percentile", 0.84), ("t", 0.95)):
        estimates = [bootstrap(lambda mean: mean, s, interval=interval) for s in samples]  # type: ignore[arg-type]
        covered = sum(e.low <= 5 <= e.high for e in estimates)
        assert covered / TRIALS == pytest.approx(expected, abs=0.04)


def test_a_paired_gain_is_surer_than_its_parts() -> None:
    base = np.random.default_rng(2).normal(10, 2, 6)
    gain = paired_gain(0.9 * base, base, higher_is_better=False)
    assert gain.value == pytest.approx(0.1)
    assert gain.high - gain.low < 1e-9
    assert gain.above_zero
    assert not gain.below_zero


def test_one_workload_has_no_interval() -> None:
    gain = paired_gain(np.array([1.1]), np.array([1.0]), higher_is_better=True)
    assert gain.value == pytest.approx(0.1)
    assert math.isnan(gain.low)
    assert math.isnan(gain.high)
    assert not gain.above_zero
    assert f"{gain:+.1%}" == "+10.0%"


def test_a_base_of_zero_has_no_relative_gain() -> None:
    gain = paired_gain(np.array([1.0, 2.0]), np.zeros(2), higher_is_better=True)
    assert math.isnan(gain.value)


def test_an_interval_is_shown_beside_its_figure() -> None:
    assert f"{Estimate(value=0.02, low=0.01, high=0.03):+.2%}" == "+2.00% [+1.00, +3.00]"


def test_intervals_of_gains_end_where_gains_do() -> None:
    """A time cannot fall by more than all of it, nor a rate: both are never below zero."""
    base = np.array([1.0, 30.0, 2.0])
    values = np.array([12.0, 1.0, 6.0])
    shorter = paired_gain(values, base, higher_is_better=False)
    assert shorter.low < shorter.value < shorter.high == 1.0
    faster = paired_gain(values, base, higher_is_better=True)
    assert -1.0 == faster.low < faster.value < faster.high
    signed = paired_gain(values - 8, base, higher_is_better=False)
    assert signed.high > 1.0


def test_no_gain_has_no_sign() -> None:
    same = np.array([2.0])
    assert f"{paired_gain(same, same, higher_is_better=False).value:+.2%}" == "+0.00%"


def test_simultaneous_intervals_hold_together() -> None:
    """Ten gains of nothing over one base: all ten intervals hold in 95 of 100 cases or more."""
    rng = np.random.default_rng(10)
    all_hold = {1: 0, 10: 0}
    for _ in range(TRIALS):
        base, *others = 0.9 + rng.normal(0, 0.02, (11, 6))
        for tests in all_hold:
            gains = [paired_gain(v, base, higher_is_better=True, tests=tests) for v in others]
            all_hold[tests] += all(gain.low <= 0 <= gain.high for gain in gains)
    assert all_hold[1] / TRIALS < 0.85
    assert all_hold[10] / TRIALS >= 0.95


def test_memory_of_resamples_is_bounded() -> None:
    """Weights of 2,000 resamples of 20,000 workloads are 320 MB."""
    samples = np.random.default_rng(1).normal(1, 0.1, 20_000)
    tracemalloc.start()
    estimate = bootstrap(lambda mean: mean, samples, interval="t")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100e6
    error = samples.std(ddof=1) / math.sqrt(len(samples))
    assert estimate.high - estimate.value == pytest.approx(1.96 * error, rel=0.06)
