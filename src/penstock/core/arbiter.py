"""Assigns resources to jobs whenever a job starts or ends, or a resource comes or goes.

The allocator says how many each job gets, the placer which ones (paper forwarding, Section 5.6.3).
A job that starts gets its resources at once. A running job is moved only if its count changes, one
of its resources is gone, or a `joint` placer decides for all jobs; the Assign comes `remap_delay`
seconds later (GekkoFWD's clients ask every ten seconds), with what was decided last by then. Under
a `sticky` allocator a running job keeps its count.

Jobs that reach the same resources divide these among themselves: those that are up, that serve the
job's user, host and partition, and that nobody has pinned, unless too few are left then. Jobs that
are not enforced take no part.

With a `fallback` no decision is ever dropped: see `counting`. A job of which the allocator knows
too little takes nothing from a known one. While it is younger than `settle` seconds it gets one
resource and moves nobody, neither when it starts nor when it ends, and so does one whose
application is known to be short (Section 5.7: short jobs are not eligible). Every job's `Allotment`
says which case it was. Without a fallback, as in most simulations, an exception is the caller's.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from penstock.core.allotment import Allotment, Reason
from penstock.core.answers import Resources
from penstock.core.counting import Counting, Failures
from penstock.core.decision import Decision
from penstock.core.explorer import Explorer
from penstock.core.placing import Placing
from penstock.core.policy_calls import PolicyCalls
from penstock.core.reach import Jobs, Reach
from penstock.core.spread import Spread
from penstock.errors import InputError
from penstock.model import (
    Action,
    Assign,
    Event,
    Job,
    JobEnded,
    JobId,
    JobsChanged,
    JobStarted,
    NodeDown,
    NodeUp,
    Pinned,
    ResourceId,
    View,
    WakeAt,
    Woke,
)
from penstock.policies.base import Allocator, Placer

Arbitrate = Callable[[Event, View], Sequence[Action]]
"""Handles an event that is not of a phase; returns Assign and WakeAt."""


@dataclass(slots=True)
class _Move:
    """A running job's next resources, and when to send them."""

    time: float
    resources: Resources


class Arbiter:
    """Runs the allocator and the placer whenever the jobs or the usable resources change."""

    def __init__(
        self,
        *,
        allocator: Allocator,
        placer: Placer,
        fallback: Allocator | None = None,
        remap_delay: float = 0.0,
        settle: float = 0.0,
        explorer: Explorer | None = None,
        all_up: bool = True,
        catches: Failures = (Exception,),
        of_all: bool = False,
        hears_phases: bool = False,
    ) -> None:
        """`all_up`: resources serve before the first NodeUp, which a live site waits for.
        `catches`: what is a failure of a policy, for which there is the fallback. `of_all`: decides
        as if all jobs were enforced, while at least one is not; it has nothing to do else.
        `hears_phases`: the host calls `begins_io`, as a live site does.
        """
        for name, seconds in (("remap-delay", remap_delay), ("settle", settle)):
            if not seconds >= 0:
                raise InputError(f"{name} is {seconds}; give seconds, zero or more")
        self.remap_delay = remap_delay
        self.settle = settle
        self.moves = 0
        """Times that a running job was moved."""
        self.assigned: dict[JobId, Resources] = {}
        """The resources that each job has, or will have once its Assign is sent."""
        self.allotments: dict[JobId, Allotment] = {}
        """The same, with reasons."""
        self.reasons: Counter[Reason] = Counter()
        """Times that a job got resources for each reason."""
        self.observe: Callable[[JobId, Allotment], None] = _ignore
        """Called with every new allotment."""
        self.calls = PolicyCalls()
        """Of the allocator, the placer and the fallback policy, for the last event."""
        self._counting = Counting(
            calls=self.calls,
            allocator=allocator,
            fallback=fallback,
            explorer=explorer,
            settle=settle,
            catches=catches,
        )
        self._spread = Spread(hears_phases=hears_phases)
        self._placing = Placing(
            calls=self.calls,
            spread=self._spread,
            placer=placer,
            falls_back=fallback is not None,
            sticky=allocator.sticky,
            catches=catches,
            assigned=self.assigned,
        )
        self._reach = Reach(all_up=all_up)
        self._of_all = of_all
        self._began: dict[JobId, tuple[float, Job]] = {}
        self._pinned: dict[JobId, Resources] = {}
        self._pending: dict[JobId, _Move] = {}
        self._displaced: set[JobId] = set()  # moved because a resource was gone

    @property
    def allocator(self) -> Allocator:
        """The policy that says how many."""
        return self._counting.allocator

    @property
    def placer(self) -> Placer:
        """The policy that says which."""
        return self._placing.placer

    @property
    def fallback(self) -> Allocator | None:
        """The policy for jobs of which too little is known."""
        return self._counting.fallback

    @property
    def failures(self) -> int:
        """Times that a policy failed, and another decision took its place."""
        return self._counting.failures + self._placing.failures

    def handle(self, event: Event, view: View) -> list[Action]:
        """Return the assignments that follow from an event."""
        now, actions = event.time, list[Action]()
        self.calls.begin()
        match event:
            case JobStarted():
                self._began[event.job.id] = now, event.job
                self._spread.started(event.job.id, now)
                if (due := self._counting.began(event.job, now, view)) is not None:
                    actions.append(WakeAt(time=due))
            case JobsChanged():
                for job in event.jobs:
                    self._counting.changed(job)
            case JobEnded():
                self._end(event.job, now)
            case NodeUp():
                self._reach.up(event)
                self._placing.returning, self._displaced = self._displaced, set()
            case NodeDown():
                self._reach.down(event.resource)
                self._displaced |= {j for j, had in self.assigned.items() if event.resource in had}
            case Pinned():
                self._pinned[event.job] = event.resources
                if event.job not in self._began:
                    return []
            case Woke():
                actions += self._deliver(now)
                if not self._counting.settled(now):
                    return actions
            case _:
                return []
        return actions + self._decide(now, view)

    def begins_io(self, job: JobId) -> None:
        """A job begins an I/O phase."""
        self._spread.begins_io(job, self.assigned.get(job, ()))

    def _end(self, job: JobId, now: float) -> None:
        if (began := self._began.pop(job, None)) is not None:
            self._counting.ended(began[1], now - began[0])
        self._forget(job)
        self._spread.ended(job)
        self._pinned.pop(job, None)

    def _forget(self, job: JobId) -> None:
        for of_job in (self.assigned, self.allotments, self._pending):
            of_job.pop(job, None)

    def _jobs(self, view: View) -> Jobs:
        """Return the jobs to decide about; forget what the others had."""
        enforced = {id: job for id, job in view.jobs.items() if job.enforced}
        jobs: Jobs = enforced
        if self._of_all:
            jobs = {} if len(enforced) == len(view.jobs) else view.jobs
        elif len(enforced) == len(view.jobs):
            return view.jobs
        for id in view.jobs:
            if id not in jobs and id in self.allotments:
                self._forget(id)
                self._counting.stopped(id)
        return jobs

    def _decide(self, now: float, view: View) -> list[Action]:
        actions: list[Action] = []
        spare: set[ResourceId] = set()
        jobs = self._jobs(view)
        pinned = {r for id in jobs for r in self._pinned.get(id, ())}
        groups = self._reach.groups(view.site.resources, jobs, self._counting.settling)
        for group in groups:
            usable = sorted(spare.intersection(group.usable).union(group.own)) or group.usable
            decision = self._divide(now, view, list(usable), group.jobs, pinned)
            for job, resources in decision.places.items():
                actions += self._change(now, job, resources)
            if len(groups) > 1:
                used = set(chain.from_iterable(decision.places.values()))
                spare = spare.union(group.own) - used
            for job, why in decision.reasons.items():
                self._keep(job, why, decision, now)
        self._placing.returning = set()
        return actions

    def _divide(
        self,
        now: float,
        view: View,
        usable: list[ResourceId],
        jobs: Jobs,
        all_pinned: set[ResourceId],
    ) -> Decision:
        """Decide how many of the usable resources each of the jobs gets, and which."""
        decision = Decision()
        pinned = {job: self._pinned[job] for job in jobs if job in self._pinned}
        decision.places |= pinned
        decision.reasons |= dict.fromkeys(pinned, "pinned")
        others = jobs if not pinned else {id: j for id, j in jobs.items() if id not in pinned}
        if not usable:
            if self.fallback is None:
                return decision  # nothing to choose from: jobs keep what they have
            decision.places |= {job: self.assigned.get(job, ()) for job in others}
            decision.reasons |= dict.fromkeys(others, "unreachable")
            return decision
        free = [r for r in usable if r not in all_pinned]
        if len(free) >= max(len(others), 1) and not self.allocator.sticky:
            usable, taken = free, 0
        else:
            taken = sum(map(len, pinned.values()))
        self._counting.decide(
            view,
            len(usable),
            others,
            decision,
            begins=lambda id: self._began[id][0] == now and id not in self.assigned,
            pinned=taken,
        )
        self._placing.decide(view, usable, jobs, decision)
        return decision

    def _change(self, now: float, job: JobId, resources: Resources) -> Iterator[Action]:
        # The order in which a job's resources are named makes no difference.
        had = self.assigned.get(job)
        if had is resources or (had is not None and set(had) == set(resources)):
            return
        self.assigned[job] = resources
        self._spread.given(job, resources)
        if job in self._pinned:
            self._pending.pop(job, None)  # it has them already
        elif self._began[job][0] == now or self.remap_delay == 0:
            self._pending.pop(job, None)
            yield self._assign(job, resources, now)
        elif job in self._pending:
            self._pending[job].resources = resources
        else:
            self._pending[job] = _Move(now + self.remap_delay, resources)
            yield WakeAt(time=now + self.remap_delay)

    def _keep(self, job: JobId, why: Reason, decision: Decision, now: float) -> None:
        """Keep why a job has its resources, and since when."""
        lacks = decision.lacks.get(job, ())
        failed = why in ("failed", "placed-by-load") and not lacks
        error = decision.errors.get(job, "") if failed else ""
        before, resources = self.allotments.get(job), self.assigned.get(job, ())
        if (
            before is not None
            and before.reason == why
            and (before.resources is resources or before.resources == resources)
            and (before.lacks, before.error) == (lacks, error)
        ):
            return
        allotment = Allotment(
            resources=resources,
            reason=why,
            since=now,
            lacks=lacks,
            error=error,
            by_default=job in decision.defaults,
        )
        self.allotments[job] = allotment
        self.reasons[why] += 1
        self.observe(job, allotment)

    def _assign(self, job: JobId, resources: Resources, now: float) -> Assign:
        self.moves += self._began[job][0] != now
        return Assign(job=job, resources=resources)

    def _deliver(self, now: float) -> list[Action]:
        due = [job for job, move in self._pending.items() if move.time <= now]
        return [self._assign(job, self._pending.pop(job).resources, now) for job in due]


def _ignore(job: JobId, allotment: Allotment) -> None:
    """Nobody follows what is decided."""
