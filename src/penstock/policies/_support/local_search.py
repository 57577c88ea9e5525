"""Local search among allocations and placements: what to try next, and the best so far.

Small changes are drawn where they are most promising: jobs that lose most, resources that are
fullest. The history has the best placement by one metric, and the Pareto front of all three.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from penstock.model import Job, ResourceId
from penstock.model.load import Options
from penstock.policies.base import Judge, Verdict

Floats = NDArray[np.float64]
Places = tuple[tuple[ResourceId, ...], ...]
"""Every job's resources, each in rising order."""
AT_RANDOM = 0.3
"""Fraction of the draws without guidance, so that everything can be reached."""
FEW = 4
"""A job is moved to one of this many of the emptiest resources."""
Metric = Literal["mean-slowdown", "idle-time", "bandwidth"]
METRICS: tuple[Metric, ...] = ("mean-slowdown", "idle-time", "bandwidth")


class Neighbours:
    """Draws neighbours of a placement; with `fixed`, counts do not change."""

    def __init__(
        self,
        options: Sequence[Options],
        *,
        resources: int,
        rng: np.random.Generator,
        fixed: bool = False,
    ) -> None:
        self._options = options
        self._resources = resources
        self._rng = rng
        self._fixed = fixed
        self._ratio = [
            dict(zip(o.counts.tolist(), o.stress / o.counts, strict=True)) for o in options
        ]

    def draw(self, places: Places, hurt: Floats) -> Places | None:
        """Return a neighbour, or None if the drawn change is not possible."""
        load = self.load(places)
        job = self._job(hurt)
        kind = self._rng.random()
        if not self._fixed and kind < 0.5:
            return self._resize(places, job, load)
        if kind < 0.8:
            return self._move(places, job, load)
        return self._swap(places, job)

    def load(self, places: Places) -> Floats:
        """Return how busy each resource would be without congestion."""
        load = [0.0] * self._resources
        for ratio, where in zip(self._ratio, places, strict=True):
            for r in where:
                load[r] += ratio[len(where)]
        return np.array(load)

    def _job(self, hurt: Floats) -> int:
        total = hurt.sum()
        if self._rng.random() < AT_RANDOM or not total > 0:
            return int(self._rng.integers(len(hurt)))
        return int(self._rng.choice(len(hurt), p=hurt / total))

    def _resize(self, places: Places, job: int, load: Floats) -> Places | None:
        """Give the job the next larger or smaller count, sometimes any other."""
        counts, where = self._options[job].counts, list(places[job])
        if len(counts) < 2:
            return None
        at = self._options[job].index(len(where))
        far = self._rng.random() < AT_RANDOM
        step = int(self._rng.integers(1, len(counts))) if far else 1
        to = (at + (step if self._rng.random() < 0.5 else -step)) % len(counts)
        count = int(counts[to])
        # Noise breaks ties: many resources may be empty.
        by_load = np.argsort(load + 1e-9 * self._rng.random(self._resources)).tolist()
        stay = [r for r in by_load if r in where][:count]
        add = [r for r in by_load if r not in where][: count - len(stay)]
        return _with(places, {job: stay + add})

    def _move(self, places: Places, job: int, load: Floats) -> Places | None:
        """Move the job, or another one of its fullest resource, to an emptier resource."""
        where = places[job]
        fullest = max(where, key=lambda r: load[r])
        beside = [k for k, others in enumerate(places) if fullest in others]
        moved = job if self._rng.random() < 0.5 else int(self._rng.choice(beside))
        free = [r for r in np.argsort(load).tolist() if r not in places[moved]][:FEW]
        if not free:
            return None
        to = int(self._rng.choice(free))
        return _with(places, {moved: [r for r in places[moved] if r != fullest] + [to]})

    def _swap(self, places: Places, job: int) -> Places | None:
        """Exchange one resource of the job with one of another job."""
        other = int(self._rng.integers(len(places)))
        mine = [r for r in places[job] if r not in places[other]]
        others = [r for r in places[other] if r not in places[job]]
        if not mine or not others:
            return None
        a, b = int(self._rng.choice(mine)), int(self._rng.choice(others))
        return _with(
            places,
            {
                job: [r for r in places[job] if r != a] + [b],
                other: [r for r in places[other] if r != b] + [a],
            },
        )


def _with(places: Places, changed: dict[int, list[int]]) -> Places:
    return tuple(
        tuple(sorted(changed[j])) if j in changed else where for j, where in enumerate(places)
    )


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
