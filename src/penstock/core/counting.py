"""How many resources each job gets: by the allocator, else by the fallback policy, or to explore.

The allocator decides for the jobs of which it knows what it needs, as if no others ran. Then a job
that may be explored with gets its count, and the others share what is left by the fallback policy,
which knows nothing of their curves. If the allocator raises an exception, the jobs about which it
raises one when it is asked about them alone are left to the fallback policy; if that does not help,
all are.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from penstock.core.allotment import by_prior, lacking
from penstock.core.answers import allocate, error_text
from penstock.core.decision import Decision
from penstock.core.explorer import EXPLORE, Explorer
from penstock.core.part_view import PartView, part
from penstock.core.policy_calls import PolicyCalls
from penstock.core.run_times import RunTimes
from penstock.model import Job, JobId, View
from penstock.policies._support.asking import OutOfTime
from penstock.policies.base import Allocator

Jobs = Mapping[JobId, Job]
Failures = tuple[type[BaseException], ...]


class Counting:
    """Decides counts, and keeps what has to stay from one decision to the next."""

    def __init__(
        self,
        *,
        calls: PolicyCalls,
        allocator: Allocator,
        fallback: Allocator | None,
        explorer: Explorer | None,
        settle: float,
        catches: Failures,
    ) -> None:
        self.allocator, self.fallback, self.explorer = allocator, fallback, explorer
        self._calls = calls
        self.settle = settle
        self.failures = 0
        """Decisions for which a policy failed."""
        self.settling: dict[JobId, float] = {}
        """When jobs that are too young to move others are so no longer."""
        self._catches = catches
        self._runs = RunTimes()
        self._kept: dict[JobId, int] = {}  # counts of a sticky allocator
        self._explored: dict[JobId, int] = {}
        self._young: dict[JobId, int] = {}  # counts of jobs that are too young to move others
        self._works_alone: dict[JobId, object] = {}

    @property
    def uses_curves(self) -> bool:
        """Whether the allocator asks for curves."""
        return bool(self.allocator.needs & {"best-count", "curve"})

    def began(self, job: Job, now: float, view: View) -> float | None:
        """Note a job; return until when it moves no other, if it has to wait for its share."""
        if self.fallback is None or not self.settle or not self._is_young(job, view):
            return None
        due = self.settling[job.id] = now + self.settle
        return due

    def _is_young(self, job: Job, view: View) -> bool:
        if lacking(job, self.allocator, view.site.resources, direct=view.site.direct):
            return True
        if self.allocator.sticky:
            return False  # what it gives one job makes no difference to the others
        if self._runs.is_shorter(job, self.settle):
            return True
        divides = self.allocator.needs & {"nodes", "processes"} and not self.uses_curves
        return bool(divides) and job.curve is None and job.volume is None

    def ended(self, job: Job, seconds: float) -> None:
        """A job is gone."""
        self.stopped(job.id)
        self.settling.pop(job.id, None)
        self._runs.ended(job, seconds)

    def stopped(self, id: JobId) -> None:
        """A job is no longer decided about."""
        for of_job in (self._kept, self._explored, self._young, self._works_alone):
            of_job.pop(id, None)

    def settled(self, now: float) -> bool:
        """Tell whether jobs have become eligible."""
        due = [job for job, time in self.settling.items() if time <= now]
        for job in due:
            del self.settling[job]
            self._young.pop(job, None)
        return bool(due)

    def changed(self, job: Job) -> None:
        """A job is known better; without the hint `explore` it is no longer explored with."""
        if not job.hints.get(EXPLORE):
            self._explored.pop(job.id, None)

    def decide(
        self,
        view: View,
        resources: int,
        jobs: Jobs,
        decision: Decision,
        *,
        begins: Callable[[JobId], bool],
        pinned: int,
    ) -> None:
        """Decide the counts of jobs on some resources, of which other jobs have pinned some."""
        if self.fallback is None:
            decision.give(self._ask(view, jobs, resources), "policy")
        else:
            direct = view.site.direct
            lacks = {
                id: lacking(j, self.allocator, resources, direct=direct) for id, j in jobs.items()
            }
            decision.lacks = {id: needs for id, needs in lacks.items() if needs}
            young = [id for id in jobs if id in self.settling]
            known = {
                id: job for id, job in jobs.items() if id not in decision.lacks and id not in young
            }
            if known:
                self._by_policy(view, known, resources, decision)
            for id in young:
                decision.give(
                    {id: self._young_count(view, jobs[id], resources, young, decision)}, "new"
                )
            self._share_rest(view, resources, jobs, decision)
        for id, why in decision.reasons.items():
            if why == "policy" and by_prior(jobs[id], self.allocator):
                decision.reasons[id] = "prior"
        if self._explore(resources, jobs, decision, begins=begins, pinned=pinned):
            self._share_rest(view, resources, jobs, decision)

    def _by_policy(self, view: View, known: Jobs, resources: int, decision: Decision) -> None:
        """Let the allocator decide; jobs that it cannot decide about have no count then."""
        try:
            decision.give(self._ask(view, known, resources), "policy")
        except self._catches as error:
            self.failures += 1
            decision.failed(known, error_text(self.allocator, error))
            if isinstance(error.__cause__, OutOfTime):
                return  # each further question might take as long
        else:
            return
        faults = self._faults(view, known, resources)
        good = {id: job for id, job in known.items() if id not in faults}
        if not faults or not good:
            return
        try:
            counts = self._ask(view, good, resources)
        except self._catches:
            return
        decision.give(counts, "policy")
        decision.errors = faults

    def _faults(self, view: View, known: Jobs, resources: int) -> dict[JobId, str]:
        """Return what the allocator raises when it is asked about one job alone, by job."""
        faults = {}
        for id, job in known.items():
            inputs = (job.curve, job.volume, job.compute, job.processes, resources)
            if self._works_alone.get(id) == inputs:
                continue
            try:
                self._ask(view, {id: job}, resources)
                self._works_alone[id] = inputs
            except self._catches as error:
                faults[id] = error_text(self.allocator, error)
                if isinstance(error.__cause__, OutOfTime):
                    break
        return faults

    def _ask(self, view: View, jobs: Jobs, resources: int) -> dict[JobId, int]:
        """Return the allocator's counts; under a sticky one, those that jobs were given first."""
        seen = self._view(view, jobs, resources)
        counts = self._calls.make(partial(allocate, self.allocator, seen))
        if self.allocator.sticky:
            return {id: min(self._kept.setdefault(id, n), resources) for id, n in counts.items()}
        return counts

    def _view(self, view: View, jobs: Jobs, resources: int) -> View:
        """Return what the allocator is told of these jobs.

        Learnt curves have the counts that jobs happened to have, and a policy gives no others: one
        that asks for no curve would be bound by what it gave before.
        """
        if self.fallback is None or self.uses_curves:
            return part(view, jobs, resources)
        plain = {id: replace(job, curve=None) for id, job in jobs.items()}
        return PartView(view, plain, resources)

    def _young_count(
        self, view: View, job: Job, resources: int, young: list[JobId], decision: Decision
    ) -> int:
        """Return what a young job has of that which no other has; it keeps this while it is young.

        One of which the allocator knows too little has one.
        """
        if job.id in decision.lacks:
            return 1
        if job.id not in self._young:
            of_young = sum(self._young.get(id, 1) for id in young if id != job.id)
            decided = sum(n for id, n in decision.counts.items() if decision.decides(id))
            left = max(resources - decided - of_young, 1)
            try:
                self._young[job.id] = self._ask(view, {job.id: job}, left)[job.id]
            except self._catches:
                return 1
        return min(self._young[job.id], resources)

    def _share_rest(self, view: View, resources: int, jobs: Jobs, decision: Decision) -> None:
        """Divide what is left among the jobs without a count, by the fallback policy."""
        rest = {
            id: replace(job, curve=None)
            for id, job in jobs.items()
            if decision.reasons.get(id) in (None, "unknown", "failed")
        }
        if self.fallback is None or not rest:
            return
        decided = sum(n for id, n in decision.counts.items() if decision.decides(id))
        try:
            seen = part(view, rest, max(resources - decided, 1))
            counts = self._calls.make(partial(allocate, self.fallback, seen))
        except self._catches as error:  # one each needs no policy
            self.failures += 1
            decision.give(dict.fromkeys(rest, 1), "failed")
            text = f"{type(self.fallback).__name__}: {error_text(self.fallback, error)}"
            for id in rest:
                decision.lacks.pop(id, None)
                before = decision.errors.get(id)
                decision.errors[id] = text if before is None else f"{before}; {text}"
            decision.defaults |= rest.keys()
            return
        for id, count in counts.items():
            decision.give({id: count}, "failed" if id in decision.errors else "unknown")

    def _explore(
        self,
        resources: int,
        jobs: Jobs,
        decision: Decision,
        *,
        begins: Callable[[JobId], bool],
        pinned: int,
    ) -> bool:
        """Vary the count of a job that starts, if it may be and there is room; tell whether.

        As in every decision, jobs of which too little is known take no room from the others. They
        have what is left, so that each counts as one where the load is judged.
        """
        if self.explorer is None or not self.uses_curves:
            return False
        undecided = sum(not decision.decides(id) for id in decision.counts)
        decided = pinned + sum(n for id, n in decision.counts.items() if decision.decides(id))
        explores = False
        for id, job in jobs.items():
            starts = begins(id) and job.hints.get(EXPLORE)
            if not starts and id not in self._explored:
                continue
            count, was_decided = decision.counts[id], decision.decides(id)
            others = decided - count if was_decided else decided
            unknown = undecided if was_decided else undecided - 1
            if starts:
                tried = self.explorer.choose(
                    job,
                    count,
                    others=others + unknown,
                    room=resources - others,
                    resources=resources,
                )
                if tried is not None:
                    self._explored[id] = tried
            if id in self._explored:
                explored = self._explored[id]
                if others + explored > resources:
                    del self._explored[id]  # others need the room
                    continue
                decision.give({id: explored}, "explored")
                decided, undecided, explores = others + explored, unknown, True
        return explores
