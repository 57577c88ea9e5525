"""The history of a search: the best placement by one metric, and the Pareto front of all three."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from penstock.model import Job
from penstock.policies._support.neighbours import Floats, Places
from penstock.policies.base import Judge, Verdict

Metric = Literal["mean-slowdown", "idle-time", "bandwidth"]
METRICS: tuple[Metric, ...] = ("mean-slowdown", "idle-time", "bandwidth")


def costs(verdict: Verdict) -> tuple[float, float, float]:
    """Return the metrics in the order of METRICS, each so that less is better."""
    return verdict.mean_slowdown, verdict.idle_time, -verdict.bandwidth


class SearchHistory:
    """The placements evaluated so far: the best by a metric, and the Pareto front of all three."""

    def __init__(self, judge: Judge, metric: Metric) -> None:
        self._judge = judge
        self._metric = METRICS.index(metric)
        self._verdicts: dict[Places, Verdict] = {}
        self.starts: dict[str, Verdict] = {}
        self.front: dict[Places, Verdict] = {}
        self.progress: list[tuple[int, float]] = []
        """Number of evaluations and cost of each new best."""
        self.best: Places
        self.verdict: Verdict

    @property
    def evaluations(self) -> int:
        """The number of different placements evaluated."""
        return len(self._verdicts)

    def start(self, name: str, places: Places) -> None:
        """Evaluate an initial placement, under its name."""
        self.starts[name] = self.evaluate(places)

    def evaluate(self, places: Places) -> Verdict:
        """Evaluate a placement that is new, and keep it if it is the best."""
        if places in self._verdicts:
            return self._verdicts[places]
        verdict = self._verdicts[places] = self._judge(places)
        if len(self._verdicts) == 1 or self._cost(verdict) < self._cost(self.verdict):
            self.best, self.verdict = places, verdict
            self.progress.append((len(self._verdicts), self._cost(verdict)))
        if not any(_as_good(other, verdict) for other in self.front.values()):
            front = {p: v for p, v in self.front.items() if not _as_good(verdict, v)}
            self.front = front | {places: verdict}
        return verdict

    def _cost(self, verdict: Verdict) -> float:
        return costs(verdict)[self._metric]


class JobLosses:
    """How much each job loses in terms of a metric."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        curves = [job.curve for job in jobs if job.curve is not None]
        self._peak = np.array([curve.at(curve.forwarded).max() for curve in curves])
        self._io = np.array([job.volume for job in jobs], np.float64) / self._peak
        self._compute = np.array([job.compute for job in jobs], np.float64)
        self._nodes = np.array([job.nodes for job in jobs], np.float64)

    def losses(self, verdict: Verdict, metric: Metric) -> Floats:
        """Return how much each job loses, in the metric's terms."""
        delay: Floats = np.clip(verdict.slowdown - 1, 0, None)
        if metric == "mean-slowdown":
            return delay
        if metric == "bandwidth":
            behind: Floats = self._peak * delay / (1 + delay)
            return behind
        idle: Floats = self._nodes * self._io * delay / (self._compute + self._io * (1 + delay))
        return idle


def _as_good(a: Verdict, b: Verdict) -> bool:
    """Return True if a is at least as good as b in all metrics."""
    return all(x <= y for x, y in zip(costs(a), costs(b), strict=True))
