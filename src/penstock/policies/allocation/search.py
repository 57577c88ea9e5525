"""search: allocation and placement together, by local search with simulations. Ours.

Paper io-resources decides how many and then which, and says that the two are not independent. This
policy starts from every pair of the papers' allocators and placers, takes the best by the judge (a
simulation), and improves it by small changes (a job's count, a resource moved or exchanged), drawn
where jobs lose most and resources are fullest; a change is kept if the judge finds it better. By
the judge the result is never worse than the best of the pairs. The engine's judge has jobs begin at
random moments, since a placement that is best for jobs that begin together is often no better than
a pair for others. Its `front` has every placement that
no other evaluated one beats in all metrics.

Jobs without I/O, or without curve, volume or compute time, are not simulated; they get their
smallest count.

It implements both protocols: `allocate` returns the counts of the result, `place` its places, or
the best places for the counts of another allocator. It needs curve, volume, compute time, nodes and
w_iter of jobs. Direct access is left out.

Options: `metric` is mean-slowdown, idle-time or bandwidth; `budget` is the number of simulations,
the pairs included; `seed` that of all draws; `judge` the module:Class that evaluates placements.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from penstock.errors import InputError
from penstock.model import Job, JobId, Site, Snapshot, View
from penstock.policies._support.counts import CurveAllocator
from penstock.policies._support.local_search import (
    METRICS,
    JobLosses,
    Metric,
    Neighbours,
    Places,
    SearchHistory,
)
from penstock.policies.allocation.best_bandwidth import BestBandwidth
from penstock.policies.allocation.mckp import Mckp
from penstock.policies.allocation.n_sys import NSys
from penstock.policies.allocation.random import Random
from penstock.policies.allocation.static import Static
from penstock.policies.allocation.t_cpu import TCpu
from penstock.policies.base import NOBODY, Allocator, Counts, Judge, Placement, Placer, Verdict
from penstock.policies.placement.exclusive import Exclusive
from penstock.policies.placement.greedy_clairvoyant import GreedyClairvoyant
from penstock.policies.placement.greedy_non_clairvoyant import GreedyNonClairvoyant
from penstock.policies.placement.random import Random as RandomPlacement

ENGINE = "penstock.sim.evaluate.judge:EngineJudge"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchResult:
    """The best placement of a search, and the Pareto front of all that were evaluated."""

    places: Placement
    verdict: Verdict
    starts: Mapping[str, Verdict]
    front: Sequence[tuple[Places, Verdict]]
    evaluations: int
    progress: Sequence[tuple[int, float]] = ()
    """Number of simulations and cost of each new best; bandwidth counts negative."""

    @property
    def counts(self) -> dict[JobId, int]:
        """The number of resources of each job."""
        return {name: len(where) for name, where in self.places.items()}


class Search(CurveAllocator):
    """Local search from the papers' policies, evaluated by simulation."""

    needs: ClassVar[frozenset[str]] = frozenset({"compute", "curve", "nodes", "volume", "w_iter"})
    goes_direct: ClassVar[bool] = False
    joint: ClassVar[bool] = True
    brings: ClassVar[str] = "search"
    offline: ClassVar[str] = (
        "it simulates hundreds of placements for every decision, for seconds during which no job "
        "would get its turn; use t-cpu, or search in 'penstock place'"
    )

    def __init__(
        self,
        *,
        measured: bool = False,
        metric: Metric = "mean-slowdown",
        budget: int = 300,
        seed: int = 0,
        judge: str = ENGINE,
    ) -> None:
        super().__init__(measured=measured)
        if metric not in METRICS:
            raise InputError(f"search: metric is {metric!r}; give one of {', '.join(METRICS)}")
        if seed < 0:
            raise InputError(f"search: seed is {seed}; give zero or more")
        if budget < 1:
            raise InputError(f"search: budget is {budget}; give at least 1 simulation")
        self.metric: Metric = metric
        self.budget = budget
        self.seed = seed
        self.judge = judge
        self._others = GreedyNonClairvoyant()
        self._last: tuple[Site, dict[JobId, Job], SearchResult] | None = None

    def allocate(self, view: View) -> Counts:
        """Return the counts of the best allocation and placement."""
        return self.find(view).counts

    def place(self, view: View, counts: Counts, staying: Placement = NOBODY) -> Placement:
        """Return the places of the result with these counts, or the best for these counts."""
        staying = {name: where for name, where in staying.items() if name not in counts}
        together = Snapshot.of([view.jobs[name] for name in (*counts, *staying)], view.site)
        if not staying and self.find(together).counts == counts:
            return self.find(together).places
        simulated = _simulated_jobs(together)
        own = {name: count for name, count in counts.items() if name in simulated.jobs}
        fixed = {name: where for name, where in staying.items() if name in simulated.jobs}
        places = self._run(simulated, own, fixed).places if own else {}
        others = {name: count for name, count in counts.items() if name not in own}
        placed = {name: places[name] for name in own}
        return placed | dict(self._others.place(together, others, {**staying, **placed}))

    def find(self, view: View) -> SearchResult:
        """Return the best allocation and placement, with the history of the search."""
        jobs = dict(view.jobs)
        # allocate and place are called one after the other for the same jobs.
        if self._last is None or self._last[:2] != (view.site, jobs):
            self._last = (view.site, jobs, self._find(Snapshot.of(jobs.values(), view.site)))
        return self._last[2]

    def _find(self, view: Snapshot) -> SearchResult:
        simulated = _simulated_jobs(view)
        result = self._run(simulated) if simulated.jobs else _NOTHING
        least = {
            name: self.fit(job, view.site, 1)
            for name, job in view.jobs.items()
            if name not in simulated.jobs
        }
        return replace(
            result, places={**result.places, **self._others.place(view, least, result.places)}
        )

    def _run(
        self,
        view: Snapshot,
        counts: Counts | None = None,
        staying: Placement = NOBODY,
    ) -> SearchResult:
        # Direct access uses no resource, so that it cannot be placed.
        view = replace(view, site=replace(view.site, direct=False))
        jobs = list(view.jobs.values())
        history = SearchHistory(_judge(self.judge, jobs, view.site), self.metric)
        if counts is None:
            pairs = self._pairs(view)
        else:
            pairs = self._placements(view, counts, "given", staying)
        for name, places in pairs:
            placed = {**places, **staying}
            history.start(name, tuple(tuple(sorted(placed[job.id])) for job in jobs))
        still = [j for j, job in enumerate(jobs) if job.id in staying]
        neighbours = Neighbours(
            [self.options(job, view.site) for job in jobs],
            resources=view.site.resources,
            rng=np.random.default_rng([self.seed, len(jobs)]),
            fixed=counts is not None,
        )
        losses = JobLosses(jobs)
        # Impossible and repeated draws need no simulation, but their number must be limited.
        for _ in range(20 * self.budget):
            if history.evaluations >= self.budget:
                break
            candidate = neighbours.draw(history.best, losses.losses(history.verdict, self.metric))
            if candidate is not None and all(candidate[j] == history.best[j] for j in still):
                history.evaluate(candidate)
        return SearchResult(
            places={job.id: where for job, where in zip(jobs, history.best, strict=True)},
            verdict=history.verdict,
            starts=history.starts,
            front=tuple(history.front.items()),
            evaluations=history.evaluations,
            progress=tuple(history.progress),
        )

    def _pairs(self, view: Snapshot) -> Iterator[tuple[str, Placement]]:
        """Yield the result of every pair of the papers' policies that the site allows."""
        allocators: dict[str, Allocator] = {
            "random": Random(measured=self.measured, seed=self.seed),
            "static": Static(measured=self.measured),
            "best-bandwidth": BestBandwidth(measured=self.measured),
            "n-sys": NSys(measured=self.measured),
            "t-cpu": TCpu(measured=self.measured),
            "t-cpu, strict": TCpu(measured=self.measured, strict=True),
        }
        for name, allocator in allocators.items():
            try:
                counts = allocator.allocate(view)
            except InputError:
                continue
            yield from self._placements(view, counts, name)
        try:
            counts = Mckp(measured=self.measured, shared=True).allocate(view)
            yield "mckp + exclusive", Exclusive().place(view, counts)
        except InputError:
            return

    def _placements(
        self,
        view: Snapshot,
        counts: Counts,
        name: str,
        staying: Placement = NOBODY,
    ) -> Iterator[tuple[str, Placement]]:
        placers: dict[str, Placer] = {
            "greedy-clairvoyant": GreedyClairvoyant(),
            "greedy-non-clairvoyant": GreedyNonClairvoyant(),
            "random": RandomPlacement(seed=self.seed),
        }
        for placer, policy in placers.items():
            yield f"{name} + {placer}", policy.place(view, counts, staying)


def _judge(entry: str, jobs: Sequence[Job], site: Site) -> Judge:
    module, _, name = entry.partition(":")
    try:
        make = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"search: judge {entry!r} cannot be loaded: {error}") from error
    try:
        judge = make(jobs, site)
    except TypeError as error:
        raise InputError(f"search: {entry!r} is not a judge: {error}") from error
    if not isinstance(judge, Judge):
        raise InputError(f"search: {entry!r} is not a judge; see Judge in penstock.policies.base")
    return judge


def _simulated_jobs(view: Snapshot) -> Snapshot:
    """Return the jobs that do I/O and have what a simulation needs."""
    jobs = view.jobs.values()
    return Snapshot.of(
        [job for job in jobs if job.curve is not None and job.volume and job.compute is not None],
        view.site,
    )


_NOTHING = SearchResult(
    places={},
    verdict=Verdict(mean_slowdown=1.0, idle_time=0.0, bandwidth=0.0, slowdown=np.zeros(0)),
    starts={},
    front=(),
    evaluations=0,
)
