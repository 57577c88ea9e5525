"""The sans-I/O heart: events in, actions out; identical behind the simulator and the controller.

It holds the one turn logic of Penstock. A phase asks for all its resources in one event, with one
key (turn, arrival, serial), so every resource orders jobs alike. A group admits its next job while
the caps of those admitted sum to less than one; in a preemptive policy the choice is made anew at
every event of the resource, and who loses it is held. The native engine has the same logic in C++;
tests keep the two equal to the last bit.
"""

import math
from bisect import insort
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace

from penstock.arbiter import Arbitrate
from penstock.learn.periods import Period
from penstock.model import (
    Action,
    Admit,
    Event,
    Hold,
    Job,
    JobEnded,
    JobId,
    JobStarted,
    PhaseBegan,
    PhaseEnded,
    Request,
    ResourceId,
    View,
    Woke,
)
from penstock.policies.base import Own, Sharing


@dataclass(order=True, slots=True)
class _Turn:
    """A request's place on one resource."""

    turn: float
    arrival: float
    serial: int
    request: Request = field(compare=False)


@dataclass(slots=True)
class _Group:
    """Who waits (in order) and who transfers, of one group on one resource."""

    waiting: list[_Turn] = field(default_factory=list)
    admitted: list[_Turn] = field(default_factory=list)

    def has_room(self) -> bool:
        return math.fsum(t.request.job.max_share for t in self.admitted) < 1.0

    def leave(self, job: JobId) -> None:
        self.admitted = [t for t in self.admitted if t.request.job.id != job]
        if any(t.request.job.id == job for t in self.waiting):  # its wait was cut short
            self.waiting = [t for t in self.waiting if t.request.job.id != job]


@dataclass(slots=True)
class _Phase:
    """A job's phase under way, with what was sampled when it began."""

    request: Request
    group: Hashable
    weight: float
    open_resources: set[ResourceId]


class Manager:
    """Decides by its policies; knows nothing of clocks, sockets or files.

    `view` answers what policies may ask of the world; `learn` makes an estimator of w_iter a job,
    which counts once it knows something, or is None where jobs bring their own w_iter; `arbitrate`
    says which resources jobs get when one starts or ends, or is None where they have their own.
    """

    def __init__(
        self,
        *,
        sharing: Sharing,
        view: View,
        learn: Callable[[Job], Period] | None = None,
        arbitrate: Arbitrate | None = None,
    ) -> None:
        self.sharing = sharing
        self.jobs: dict[JobId, Job] = {}
        self._view = view
        self._learn = learn
        self._arbitrate = arbitrate
        self._periods: dict[JobId, Period] = {}
        self._phases: dict[JobId, _Phase] = {}
        self._groups: dict[tuple[ResourceId, Hashable], _Group] = {}

    def handle(self, event: Event) -> list[Action]:
        """Take in what happened and return what to do about it."""
        match event:
            case PhaseBegan():
                return list(self._begin(event))
            case PhaseEnded():
                return list(self._end(event))
            case JobStarted():
                self.jobs[event.job.id] = event.job
                if self._learn is not None:
                    self._periods[event.job.id] = self._learn(event.job)
            case JobEnded():
                self.jobs.pop(event.job, None)
                self._periods.pop(event.job, None)
        if self._arbitrate is not None and isinstance(event, JobStarted | JobEnded | Woke):
            return list(self._arbitrate(event, self._view))
        return []

    def in_phase(self, job: JobId) -> bool:
        """Say whether a phase of the job is under way here: none is that a policy raised at."""
        return job in self._phases

    def ahead_of(self, job: JobId) -> list[JobId]:
        """Return whom a phase waits for: who transfers in its group, then who is before it there.

        None, if it waits for nobody.
        """
        phase = self._phases.get(job)
        ahead: dict[JobId, None] = {}
        for resource in () if phase is None else sorted(phase.open_resources):
            mates = self._groups.get((resource, phase.group), _Group()) if phase else _Group()
            queue = [turn.request.job.id for turn in mates.waiting]
            if job in queue:
                ahead |= dict.fromkeys(turn.request.job.id for turn in mates.admitted)
                ahead |= dict.fromkeys(queue[: queue.index(job)])
        return list(ahead)

    def period(self, job: JobId) -> Period | None:
        """Return the estimator of a job's w_iter, if it has one."""
        return self._periods.get(job)

    def _begin(self, event: PhaseBegan) -> Iterable[Action]:
        job = self.jobs[event.job]
        period = self._periods.get(event.job)
        if period is not None and (w_iter := period.began(event.time)) is not None:
            job = self.jobs[event.job] = replace(job, w_iter=w_iter)
        request = Request(job=job, arrival=event.time, resources=event.resources, io=event.io)
        group = self.sharing.group(job)
        weight = self.sharing.weight(job)
        self._phases[job.id] = _Phase(request, group, weight, set(event.resources))
        for resource in event.resources:
            if group is Own.GROUP:
                yield self._admit(request, resource)
                continue
            mates = self._groups.setdefault((resource, group), _Group())
            turn = self.sharing.turn(request, self._view)
            insort(mates.waiting, _Turn(turn, event.time, job.serial, request))
            yield from self._choose(resource, mates)

    def _end(self, event: PhaseEnded) -> Iterable[Action]:
        phase = self._phases[event.job]
        taken = event.resource in phase.open_resources
        phase.open_resources.discard(event.resource)
        if taken and phase.group is not Own.GROUP:
            mates = self._groups[event.resource, phase.group]
            mates.leave(event.job)
            yield from self._choose(event.resource, mates)
        if not phase.open_resources:
            del self._phases[event.job]
            if event.job in self._periods:
                self._periods[event.job].ended(event.time - event.idle, event.io)

    def _choose(self, resource: ResourceId, group: _Group) -> Iterable[Action]:
        rivals = self.sharing.preemptive and len(group.admitted) > 1
        if not group.waiting and not rivals:
            return
        before = {t.request.job.id for t in group.admitted}
        if self.sharing.preemptive:
            for holder in group.admitted:
                holder.turn = self.sharing.turn(holder.request, self._view)
            group.waiting = sorted(group.waiting + group.admitted)
            group.admitted = []
        if self.sharing.dynamic:
            for waiting in group.waiting:
                waiting.turn = self.sharing.turn(waiting.request, self._view)
            group.waiting.sort()
        while group.waiting and group.has_room():
            group.admitted.append(group.waiting.pop(0))
        now = {t.request.job.id for t in group.admitted}
        for turn in group.waiting:
            if turn.request.job.id in before:
                yield Hold(job=turn.request.job.id, resource=resource)
        for turn in group.admitted:
            if turn.request.job.id in now - before:
                yield self._admit(turn.request, resource)

    def _admit(self, request: Request, resource: ResourceId) -> Admit:
        job = request.job
        weight = self._phases[job.id].weight
        return Admit(job=job.id, resource=resource, weight=weight, max_share=job.max_share)
