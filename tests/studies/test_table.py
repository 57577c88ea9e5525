"""Means over workloads and their intervals."""

import numpy as np
import pytest

from penstock.studies.io_sets.gains import gain
from penstock.studies.table import Table, bootstrap


def test_the_interval_covers_the_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    estimates = [bootstrap(lambda mean: mean, rng.normal(5, 2, 40)) for _ in range(200)]
    covered = sum(e.low <= 5 <= e.high for e in estimates)
    assert 0.88 <= covered / 200 <= 0.99
    assert np.mean([e.high - e.low for e in estimates]) == pytest.approx(
        2 * 1.96 * 2 / 40**0.5, rel=0.1
    )


def test_a_paired_ratio_is_surer_than_its_parts() -> None:
    base = np.random.default_rng(2).normal(10, 2, 30)
    ratio = bootstrap(lambda a, b: a / b, 1.1 * base, base)
    assert ratio.value == pytest.approx(1.1)
    assert ratio.high - ratio.low < 1e-9


def row(policy: str, workload: int, utilization: float, stretch: float) -> dict[str, object]:
    return {
        "scenario": "one",
        "x": 3,
        "workload": workload,
        "policy": policy,
        "utilization": utilization,
        "max_stretch": stretch,
    }


def test_gains_are_positive_when_ours_is_better() -> None:
    table = Table(
        [row("set-10", k, 0.96, 1.0) for k in range(4)]  # type: ignore[arg-type]
        + [row("fair-share", k, 0.80, 1.5) for k in range(4)]
    )
    assert gain(table, "one", "utilization").value == pytest.approx(0.96 / 0.80 - 1)
    assert gain(table, "one", "max_stretch").value == pytest.approx(1.5 / 1.0 - 1)
    assert table.policies("one") == ["set-10", "fair-share"]
    assert table.points("one") == [3]


def test_a_missing_value_does_not_become_a_zero() -> None:
    rows = [row("set-10", 0, 0.9, 1.0) | {"io_slowdown": None}]
    assert np.isnan(Table(rows).values("one", 3, "set-10", "io_slowdown")[0])  # type: ignore[arg-type]
