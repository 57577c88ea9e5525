"""The study's metrics and comparisons.

A change is ours / other - 1 of means over sets of jobs, averaged over loads, with a 95% bootstrap
interval over sets; both met the same sets. All metrics but bandwidth are better when lower.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.studies.io_resources.scenarios import LOADS, pair
from penstock.studies.table import Estimate, Table

SLOWDOWN, MAX, IDLE, BANDWIDTH = "mean_slowdown", "max_slowdown", "idle_time", "bandwidth"
BY_COUNT, BY_OTHERS, SPREAD = "slowdown_io", "slowdown_congestion", "spread"
NAMES = {
    SLOWDOWN: "Mean-I/O-SlowDown",
    MAX: "Max-I/O-SlowDown",
    IDLE: "Machine-IdleTime",
    BANDWIDTH: "aggregate bandwidth",
    BY_COUNT: "rho_io",
    BY_OTHERS: "rho_con",
    SPREAD: "I/O-spread",
}
NODES, OST, TWENTY = "io-nodes", "ost", "twenty-jobs"
LOW, HIGH = (0.1, 0.2, 0.3), (0.8, 0.9, 1.0)
"""The loads that "low" and "high" mean here; the paper gives none."""
BEST, N_SYS, T_CPU, STATIC = "best-bandwidth", "n-sys", "t-cpu", "static"
OURS = "not in the paper"


def change(
    table: Table,
    scenario: str,
    metric: str,
    ours: str,
    other: str,
    *,
    loads: Sequence[float] | None = None,
) -> Estimate:
    """Return by how much `ours` is above `other`, as a fraction."""
    ratio = table.ratio(scenario, metric, ours, other, loads)
    return Estimate(value=ratio.value - 1, low=ratio.low - 1, high=ratio.high - 1)


def changes(
    table: Table,
    scenario: str,
    metric: str,
    ours: str,
    other: str,
    *,
    loads: Sequence[float] | None = None,
) -> dict[float, Estimate]:
    """Return the change at each load, up to saturation unless told otherwise."""
    loads = unsaturated(table, scenario) if loads is None else loads
    return {x: change(table, scenario, metric, ours, other, loads=[x]) for x in loads}


def unsaturated(table: Table, scenario: str) -> list[float]:
    """Return the scenario's loads up to one."""
    return [x for x in table.points(scenario) if x <= LOADS[-1]]


def mean(table: Table, scenario: str, x: float, policy: str, metric: str) -> float:
    """Return a metric's mean over sets."""
    return float(table.values(scenario, x, policy, metric).mean())


def over(table: Table, scenario: str, loads: Sequence[float], policy: str, metric: str) -> float:
    """Return a metric's mean over sets and loads."""
    return float(np.mean([mean(table, scenario, x, policy, metric) for x in loads]))


def cutoff(table: Table, scenario: str, metric: str = SLOWDOWN) -> float | None:
    """Return the load from which n-sys is better than best-bandwidth, between points by a line."""
    points = table.points(scenario)
    behind = [
        mean(table, scenario, x, pair(N_SYS), metric) - mean(table, scenario, x, pair(BEST), metric)
        for x in points
    ]
    for k in range(len(points) - 1, -1, -1):
        if behind[k] > 0:
            if k + 1 == len(points):
                return None
            step = behind[k] / (behind[k] - behind[k + 1])
            return points[k] + step * (points[k + 1] - points[k])
    return points[0]


def percent(estimate: Estimate, digits: int = 1) -> str:
    """Return a fraction in per cent, with its interval."""
    return estimate.show(f"+.{digits}f", unit="%", scale=100)


def extent(by_load: Mapping[float, Estimate], digits: int = 1) -> str:
    """Return the smallest and the largest of several changes, and where they are."""
    low = min(by_load, key=lambda x: by_load[x].value)
    high = max(by_load, key=lambda x: by_load[x].value)
    least, most = (f"{100 * by_load[x].value:+.{digits}f}%" for x in (low, high))
    return f"{least} (load {low:g}) to {most} (load {high:g})"


def at(load: float | None) -> str:
    """Return a load in words."""
    return "nowhere" if load is None else f"at {load:.2f}"
