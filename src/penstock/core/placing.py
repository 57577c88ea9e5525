"""Which resources each job gets: by the placer, else the least loaded."""

from collections import Counter
from collections.abc import Mapping
from functools import partial

from penstock.core.allotment import DECIDED, lacking
from penstock.core.answers import Resources, error_text, place
from penstock.core.counting import Failures
from penstock.core.decision import Decision
from penstock.core.part_view import part
from penstock.core.policy_calls import PolicyCalls
from penstock.core.spread import Spread
from penstock.model import Job, JobId, ResourceId, View
from penstock.policies.base import Placer
from penstock.policies.placement.greedy_non_clairvoyant import GreedyNonClairvoyant

Jobs = Mapping[JobId, Job]


class Placing:
    """Chooses resources; `assigned` are those that jobs have, and `returning` jobs move."""

    def __init__(
        self,
        *,
        calls: PolicyCalls,
        spread: Spread,
        placer: Placer,
        falls_back: bool,
        sticky: bool,
        catches: Failures,
        assigned: Mapping[JobId, Resources],
    ) -> None:
        self._calls, self._spread = calls, spread
        self.placer = placer
        self.failures = 0
        """Decisions for which the placer failed."""
        self.returning: set[JobId] = set()
        """Jobs that are placed again, because a resource is back."""
        self._falls_back, self._sticky, self._catches = falls_back, sticky, catches
        self._assigned = assigned

    def decide(self, view: View, usable: list[ResourceId], jobs: Jobs, decision: Decision) -> None:
        """Choose the resources of each job: by the placer, then on the least loaded."""
        by_load = {id for id, why in decision.reasons.items() if why not in DECIDED | {"pinned"}}
        if self._falls_back:
            for id, count in decision.counts.items():
                if id not in by_load and (needs := self._lacking(jobs[id], count, view)):
                    by_load.add(id)
                    decision.lacks[id], decision.reasons[id] = needs, "placed-by-load"
        placed = {id: jobs[id] for id in decision.counts if id not in by_load}
        if len(placed) < len(self._assigned.keys() | jobs.keys()):
            # Policies prefer low numbers: those without any other job come first.
            load = Counter(r for id, had in self._assigned.items() if id not in placed for r in had)
            usable = sorted(usable, key=lambda r: (load[r], r))
        try:
            decision.places |= self._by_placer(view, usable, placed, decision.counts)
        except self._catches as error:
            if not self._falls_back:
                raise
            self.failures += 1
            decision.failed(placed, error_text(self.placer, error))
            for id in placed:
                decision.reasons[id] = "placed-by-load"
            by_load |= placed.keys()
        if by_load:
            counts = {id: n for id, n in decision.counts.items() if id in by_load}
            decision.places |= self._least_loaded(view, usable, jobs, counts, decision.places)

    def _lacking(self, job: Job, count: int, view: View) -> tuple[str, ...]:
        """Return what the placer needs to know of a job with this count and is not known."""
        site = view.site
        lacks = lacking(job, self.placer, site.resources, direct=site.direct)
        if count and not lacks and "curve" in self.placer.needs:
            return () if job.curve is not None and count in job.curve else ("curve",)
        return lacks

    def _by_placer(
        self, view: View, usable: list[ResourceId], jobs: Jobs, counts: Mapping[JobId, int]
    ) -> dict[JobId, Resources]:
        assigned, there = self._assigned, set(usable)
        placed = {job for job in jobs if job in assigned and job not in self.returning}
        joint = getattr(self.placer, "joint", False) and not self._sticky
        to_place = {
            job: counts[job]
            for job in jobs
            if joint
            or job not in placed
            or len(assigned[job]) != counts[job]
            or not there.issuperset(assigned[job])  # one of its resources is gone
        }
        if not to_place:
            return {job: assigned[job] for job in jobs}
        # Policies number the usable resources from 0.
        number = {resource: k for k, resource in enumerate(usable)}
        decided = {
            job: tuple([number[r] for r in assigned[job] if r in number])
            if joint or job in to_place
            else tuple(map(number.__getitem__, assigned[job]))
            for job in jobs
            if job in placed
        }
        staying = decided if joint else {j: r for j, r in decided.items() if j not in to_place}
        seen = part(view, jobs, len(usable))
        places = self._calls.make(partial(place, self.placer, seen, to_place, staying))
        return {
            job: tuple(usable[k] for k in places[job]) if job in places else assigned[job]
            for job in jobs
        }

    def _least_loaded(
        self,
        view: View,
        usable: list[ResourceId],
        jobs: Jobs,
        counts: Mapping[JobId, int],
        places: Mapping[JobId, Resources],
    ) -> dict[JobId, Resources]:
        """Return the resources of jobs that the placer does not place; they stay if they can.

        Jobs load a resource if the policies decided for them or they do I/O. Of equally loaded ones
        those come first that fewer jobs used, so that jobs that run one after the other use all.
        """
        usable = self._spread.order(usable, self._assigned, view.now)
        number = {resource: k for k, resource in enumerate(usable)}
        had = {job: self._assigned[job] for job in counts if job in self._assigned}
        stay = {
            job: resources
            for job, resources in had.items()
            if len(resources) == counts[job]
            and all(r in number for r in resources)
            and job not in self.returning
        }
        to_place = {job: count for job, count in counts.items() if job not in stay and count}
        elsewhere = {job: r for job, r in self._assigned.items() if job not in jobs}
        if not to_place:
            return {job: stay.get(job, ()) for job in counts}
        there = number.keys()
        staying = {
            job: tuple(map(number.__getitem__, filter(there.__contains__, resources)))
            for job, resources in {**elsewhere, **places, **stay}.items()
            if job in places or job in self._spread.users
        }
        among = part(view, jobs, len(usable))
        chosen = GreedyNonClairvoyant().place(among, to_place, staying)
        return stay | {
            job: tuple(sorted(usable[k] for k in chosen.get(job, ())))
            for job in counts
            if job not in stay
        }
