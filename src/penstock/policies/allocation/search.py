"""search: allocation and placement together, with a simulation of the jobs as judge. Ours.

Paper io-resources decides how many and then which, and says that the two are not independent. This
one begins with every pair of the papers' allocators and placers, keeps the best by the judge, and
improves it by small changes (a job's count, a resource moved or exchanged), drawn where jobs are
hurt most and resources fullest, each kept if the judge finds it better. So it is never worse by the
judge than the best of the pairs. All that it saw and nothing else it saw beats in all metrics at
once is its `front`.

Jobs without I/O, or of which too little is known, are not judged; they get the least they may have.

It implements both protocols: `allocate` gives the counts that it found, `place` their places, or
the best places it finds for counts of others. What it decides on is what jobs are known to be:
curve, volume, compute time, nodes and w_iter. Direct access is left out.

Options: `metric` is mean-slowdown, idle-time or bandwidth; `budget` the number of simulations, the
pairs included; `seed` that of all draws; `judge` who says what a placement is worth.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from penstock.errors import InputError
from penstock.model import Job, JobId, Site, Snapshot, View
from penstock.policies._support.counts import Choosing
from penstock.policies._support.neighbours import Neighbours, Places
from penstock.policies._support.trials import METRICS, Known, Metric, Trial
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
class Found:
    """What a search found, and all it saw that nothing beats in every metric at once."""

    places: Placement
    verdict: Verdict
    starts: Mapping[str, Verdict]
    front: Sequence[tuple[Places, Verdict]]
    evaluations: int
    progress: Sequence[tuple[int, float]] = ()
    """After how many simulations the best became how good; less is better, bandwidth negative."""

    @property
    def counts(self) -> dict[JobId, int]:
        """How many resources each job gets."""
        return {name: len(where) for name, where in self.places.items()}


class Search(Choosing):
    """Local search from the papers' answers, judged by simulation."""

    needs: ClassVar[frozenset[str]] = frozenset({"compute", "curve", "nodes", "volume", "w_iter"})
    goes_direct: ClassVar[bool] = False
    joint: ClassVar[bool] = True
    brings: ClassVar[str] = "search"

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
        self._last: tuple[Site, dict[JobId, Job], Found] | None = None

    def allocate(self, view: View) -> Counts:
        """Return the counts of the best allocation and placement found."""
        return self.find(view).counts

    def place(self, view: View, counts: Counts, staying: Placement = NOBODY) -> Placement:
        """Return the places found along with these counts, or the best found for them alone."""
        staying = {name: where for name, where in staying.items() if name not in counts}
        together = Snapshot.of([view.jobs[name] for name in (*counts, *staying)], view.site)
        if not staying and self.find(together).counts == counts:
            return self.find(together).places
        known = _judged(together)
        judged = {name: count for name, count in counts.items() if name in known.jobs}
        fixed = {name: where for name, where in staying.items() if name in known.jobs}
        found = self._run(known, judged, fixed).places if judged else {}
        others = {name: count for name, count in counts.items() if name not in judged}
        placed = {name: found[name] for name in judged}
        return placed | dict(self._others.place(together, others, {**staying, **placed}))

    def find(self, view: View) -> Found:
        """Return the best allocation and placement found, and how it was come by."""
        jobs = dict(view.jobs)
        # Allocation and placement of the same jobs are asked for one after the other.
        if self._last is None or self._last[:2] != (view.site, jobs):
            self._last = (view.site, jobs, self._find(Snapshot.of(jobs.values(), view.site)))
        return self._last[2]

    def _find(self, view: Snapshot) -> Found:
        known = _judged(view)
        found = self._run(known) if known.jobs else _NOTHING
        least = {
            name: self.fit(job, view.site, 1)
            for name, job in view.jobs.items()
            if name not in known.jobs
        }
        return replace(
            found, places={**found.places, **self._others.place(view, least, found.places)}
        )

    def _run(
        self,
        view: Snapshot,
        counts: Counts | None = None,
        staying: Placement = NOBODY,
    ) -> Found:
        # No count of a curve stands for direct access here: it does not go through resources.
        view = replace(view, site=replace(view.site, direct=False))
        jobs = list(view.jobs.values())
        trial = Trial(_judge(self.judge, jobs, view.site), self.metric)
        if counts is None:
            pairs = self._pairs(view)
        else:
            pairs = self._placements(view, counts, "given", staying)
        for name, places in pairs:
            placed = {**places, **staying}
            trial.start(name, tuple(tuple(sorted(placed[job.id])) for job in jobs))
        still = [j for j, job in enumerate(jobs) if job.id in staying]
        neighbours = Neighbours(
            [self.options(job, view.site) for job in jobs],
            resources=view.site.resources,
            rng=np.random.default_rng([self.seed, len(jobs)]),
            fixed=counts is not None,
        )
        known = Known(jobs)
        # Draws that lead nowhere, or to what was seen before, cost nothing but must end.
        for _ in range(20 * self.budget):
            if trial.evaluations >= self.budget:
                break
            drawn = neighbours.draw(trial.best, known.hurt(trial.verdict, self.metric))
            if drawn is not None and all(drawn[j] == trial.best[j] for j in still):
                trial.look(drawn)
        return Found(
            places={job.id: where for job, where in zip(jobs, trial.best, strict=True)},
            verdict=trial.verdict,
            starts=trial.starts,
            front=tuple(trial.front.items()),
            evaluations=trial.evaluations,
            progress=tuple(trial.progress),
        )

    def _pairs(self, view: Snapshot) -> Iterator[tuple[str, Placement]]:
        """Yield what the papers' allocators and placers would do, where the site allows it."""
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
        made = make(jobs, site)
    except TypeError as error:
        raise InputError(f"search: {entry!r} is no judge: {error}") from error
    if not isinstance(made, Judge):
        raise InputError(f"search: {entry!r} is no judge; see Judge in penstock.policies.base")
    return made


def _judged(view: Snapshot) -> Snapshot:
    """Return the jobs that do I/O and are known well enough to be simulated."""
    jobs = view.jobs.values()
    return Snapshot.of(
        [job for job in jobs if job.curve is not None and job.volume and job.compute is not None],
        view.site,
    )


_NOTHING = Found(
    places={},
    verdict=Verdict(mean_slowdown=1.0, idle_time=0.0, bandwidth=0.0, slowdown=np.zeros(0)),
    starts={},
    front=(),
    evaluations=0,
)
