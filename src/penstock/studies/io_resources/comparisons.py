"""The study's metrics and comparisons.

A change is ours / other - 1 of means over sets of jobs, averaged over loads, with a 95% bootstrap
interval over sets; both met the same sets. All metrics but bandwidth are better when lower.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.report.findings import Series
from penstock.studies.io_resources.scenarios import ALLOCATORS, LOADS, MCKP, pair
from penstock.studies.table import Estimate, Table
from penstock.studies.texts import captions_of, claims_of

SLOWDOWN, MAX, IDLE, BANDWIDTH = "mean_slowdown", "max_slowdown", "idle_time", "bandwidth"
BY_COUNT, BY_OTHERS, SPREAD = "slowdown_io", "slowdown_congestion", "spread"
NAMES = {
    SLOWDOWN: "Mean-I/O-SlowDown",
    MAX: "Max-I/O-SlowDown",
    IDLE: "Machine-IdleTime",
    BANDWIDTH: "aggregate bandwidth",
}
NODES, MEASURED = "io-nodes", "measured-counts"
BY_JOBS = {40: NODES, 30: "thirty-jobs", 20: "twenty-jobs"}
"""The scenario with each number of jobs K, which the paper does not print."""
LOW, HIGH = (0.1, 0.2, 0.3), (0.8, 0.9, 1.0)
"""The loads that "low" and "high" mean in figures; the paper gives none."""
LOW_UP_TO, HIGH_FROM = (LOW[-1], 0.2, 0.5), (HIGH[0], 0.9, 0.6)
"""Up to and from which load these may be, for claims; the one of the figures first."""
BEST, N_SYS, T_CPU, STATIC, STRICT = "best-bandwidth", "n-sys", "t-cpu", "static", "t-cpu, strict"
PAPER = tuple(name for name in ALLOCATORS if name != STRICT)
"""The allocators as the paper has them."""
LOAD = r"I/O-load($\pi_{sys}$)"
IDLE_PART = "part of node time in I/O"

claim = claims_of("io-resources", low=LOW, high=HIGH)
figure = captions_of("io-resources")


class Sweep:
    """The rows of a scenario over its loads; an allocator alone has greedy-non-clairvoyant."""

    def __init__(self, table: Table, scenario: str) -> None:
        self._table, self._scenario = table, scenario
        self.all_loads = table.points(scenario)
        self.loads = [x for x in self.all_loads if x <= LOADS[-1]]
        """Up to saturation."""

    def low(self) -> dict[str, list[float]]:
        """Return the ways to read "low load"."""
        return {f"loads up to {end:g}": [x for x in self.loads if x <= end] for end in LOW_UP_TO}

    def high(self) -> dict[str, list[float]]:
        """Return the ways to read "high load"."""
        return {f"loads from {end:g}": [x for x in self.loads if x >= end] for end in HIGH_FROM}

    def change(
        self, metric: str, ours: str, other: str, loads: Sequence[float] | None = None
    ) -> Estimate:
        """Return by how much `ours` is above `other`, as a fraction, up to saturation."""
        loads = self.loads if loads is None else loads
        return self._table.ratio(self._scenario, metric, _policy(ours), _policy(other), loads) - 1

    def changes(
        self, metric: str, ours: str, other: str, loads: Sequence[float] | None = None
    ) -> dict[float, Estimate]:
        """Return the change at each load, up to saturation unless told otherwise."""
        loads = self.loads if loads is None else loads
        return {x: self.change(metric, ours, other, [x]) for x in loads}

    def mean(self, x: float, policy: str, metric: str) -> float:
        """Return a metric's mean over sets."""
        return float(self._table.values(self._scenario, x, _policy(policy), metric).mean())

    def over(self, loads: Sequence[float], policy: str, metric: str) -> float:
        """Return a metric's mean over sets and loads."""
        return float(np.mean([self.mean(x, policy, metric) for x in loads]))

    def cutoff(self) -> float | None:
        """Return the load from which n-sys is better than best-bandwidth, by lines between."""
        points = self.all_loads
        behind = [self.mean(x, N_SYS, SLOWDOWN) - self.mean(x, BEST, SLOWDOWN) for x in points]
        for k in range(len(points) - 1, -1, -1):
            if behind[k] > 0:
                if k + 1 == len(points):
                    return None
                step = behind[k] / (behind[k] - behind[k + 1])
                return points[k] + step * (points[k + 1] - points[k])
        return points[0]

    def sets(self, jobs: int = 40) -> str:
        """Return how many sets each point stands for."""
        count = len(self._table.rows(self._scenario, self.all_loads[0], MCKP))
        return f"Simulated; {count} synthetic sets of {jobs} jobs per load"

    def percentiles(self, policy: str, metric: str, label: str) -> Series:
        """Return means with the interval from the 10th to the 90th percentile, as the paper."""
        values = self._table.grid(self._scenario, _policy(policy), metric).T
        low, high = ([float(np.percentile(v, part)) for v in values] for part in (10, 90))
        y = [float(v.mean()) for v in values]
        return Series(label=label, x=self.all_loads, y=y, low=low, high=high)


def _policy(name: str) -> str:
    return pair(name) if name in ALLOCATORS else name


def extent(by_load: Mapping[float, Estimate], form: str = "+.1%") -> str:
    """Return the smallest and the largest of several changes, and where they are."""
    ends = (f(by_load, key=lambda x: by_load[x].value) for f in (min, max))
    return " to ".join(f"{by_load[x].value:{form}} (load {x:g})" for x in ends)


def at(load: float | None) -> str:
    """Return a load in words."""
    return "nowhere" if load is None else f"at {load:.2f}"
