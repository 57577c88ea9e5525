"""The decisions of Penstock: events in, actions out, the same in simulator and controller.

This is the one turn logic. A phase requests all its resources in one event, with one key (turn,
arrival, serial), so every resource orders jobs alike. A group admits its next job while the
`max_share` of the admitted jobs sum to less than one; a preemptive policy chooses again at every
event of the resource, and a job that loses its place is held. The native engine has the same logic
in C++; tests keep the two equal to the last bit.

On a live site a group can also be fair to users: each user has a queue, in the policy's order, and
a free place goes to the user whose last turn is longest ago. A preemptive policy then chooses
among the jobs of the users that have a place; a user keeps it until one of its phases ends. With a
single user the order is unchanged.
"""

import math
from bisect import insort
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from penstock.core.arbiter import Arbitrate
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
    """The jobs of a group on one resource: waiting (in order, by user) and admitted."""

    waiting: dict[str, list[_Turn]] = field(default_factory=dict)
    admitted: list[_Turn] = field(default_factory=list)
    served: dict[str, int] = field(default_factory=dict)  # number of each user's last turn
    turns: int = 0

    def has_room(self) -> bool:
        return math.fsum(t.request.job.max_share for t in self.admitted) < 1.0

    def leave(self, job: JobId) -> None:
        self.admitted = [t for t in self.admitted if t.request.job.id != job]
        for user, queue in self.waiting.items():
            if any(t.request.job.id == job for t in queue):  # it ends while it waits
                self.waiting[user] = [t for t in queue if t.request.job.id != job]
        self.waiting = {user: queue for user, queue in self.waiting.items() if queue}

    def next(self, holding: list[str]) -> _Turn:
        """Remove and return the next turn: of a user that holds a place, else the least served."""
        user = min(self.waiting, key=lambda user: (user not in holding, *self._key(user)))
        turn = self.waiting[user].pop(0)
        if not self.waiting[user]:
            del self.waiting[user]
        if user in holding:
            holding.remove(user)
        else:
            self.turns += 1
            self.served[user] = self.turns
        return turn

    def queue(self) -> list[JobId]:
        """Return the waiting jobs, in the order of their turns if no other job came."""
        users = sorted(self.waiting, key=self._key)
        rounds = zip_longest(*(self.waiting[user] for user in users))
        return [turn.request.job.id for turns in rounds for turn in turns if turn is not None]

    def _key(self, user: str) -> tuple[int, _Turn]:
        return self.served.get(user, 0), self.waiting[user][0]


@dataclass(slots=True)
class _OpenRequest:
    """The request of a phase in progress; group and weight were sampled when it began."""

    request: Request
    group: Hashable
    weight: float
    open_resources: set[ResourceId]


class Manager:
    """Decides by its policies; has no clock, socket or file.

    `view` is what policies may see; `learn` makes one estimator of w_iter per job, or is None where
    jobs bring their own w_iter; `arbitrate` assigns resources when a job starts or ends or a
    resource comes or goes, or is None where jobs have their own; `fair_users` alternates the turns
    of a group between users.
    """

    def __init__(
        self,
        *,
        sharing: Sharing,
        view: View,
        learn: Callable[[Job], Period] | None = None,
        arbitrate: Arbitrate | None = None,
        fair_users: bool = False,
    ) -> None:
        self.sharing = sharing
        self.jobs: dict[JobId, Job] = {}
        self._view = view
        self._learn = learn
        self._arbitrate = arbitrate
        self._fair_users = fair_users
        self._periods: dict[JobId, Period] = {}
        self._phases: dict[JobId, _OpenRequest] = {}
        self._groups: dict[tuple[ResourceId, Hashable], _Group] = {}

    def handle(self, event: Event) -> list[Action]:
        """Return what to do about an event."""
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
        if self._arbitrate is None:
            return []
        return list(self._arbitrate(event, self._view))

    def in_phase(self, job: JobId) -> bool:
        """Tell whether a phase is in progress; False for one whose policy raised an exception."""
        return job in self._phases

    def ahead_of(self, job: JobId) -> list[JobId]:
        """Return the jobs that a waiting phase waits for: those admitted, then those before it."""
        phase = self._phases.get(job)
        ahead: dict[JobId, None] = {}
        for resource in () if phase is None else sorted(phase.open_resources):
            group = self._groups.get((resource, phase.group), _Group()) if phase else _Group()
            queue = group.queue()
            if job in queue:
                ahead |= dict.fromkeys(turn.request.job.id for turn in group.admitted)
                ahead |= dict.fromkeys(queue[: queue.index(job)])
        return list(ahead)

    def queues(self) -> Iterable[tuple[list[JobId], list[JobId]]]:
        """Yield the admitted and the waiting jobs of each group that has some waiting, in order."""
        for group in self._groups.values():
            if group.waiting:
                yield [turn.request.job.id for turn in group.admitted], group.queue()

    def period(self, job: JobId) -> Period | None:
        """Return the estimator of a job's w_iter, if it has one."""
        return self._periods.get(job)

    def _begin(self, event: PhaseBegan) -> Iterable[Action]:
        job = self.jobs[event.job]
        period = self._periods.get(event.job)
        if (
            period is not None
            and (w_iter := period.resumed() if event.resumes else period.began(event.time))
            is not None
        ):
            job = self.jobs[event.job] = replace(job, w_iter=w_iter)
        request = Request(job=job, arrival=event.time, resources=event.resources, io=event.io)
        group = self.sharing.group(job)
        weight = self.sharing.weight(job)
        self._phases[job.id] = _OpenRequest(request, group, weight, set(event.resources))
        for resource in event.resources:
            if group is Own.GROUP:
                yield self._admit(request, resource)
                continue
            mates = self._groups.setdefault((resource, group), _Group())
            turn = self.sharing.turn(request, self._view)
            queue = mates.waiting.setdefault(self._queue_name(job), [])
            insort(queue, _Turn(turn, event.time, job.serial, request))
            yield from self._choose(resource, mates)

    def _end(self, event: PhaseEnded) -> Iterable[Action]:
        phase = self._phases[event.job]
        is_open = event.resource in phase.open_resources
        phase.open_resources.discard(event.resource)
        # First of all: a policy may raise below, and the phase is over nevertheless.
        if not phase.open_resources:
            del self._phases[event.job]
            if event.job in self._periods:
                self._periods[event.job].ended(event.time - event.idle, event.io)
        if is_open and phase.group is not Own.GROUP:
            group = self._groups[event.resource, phase.group]
            group.leave(event.job)
            yield from self._choose(event.resource, group)

    def _choose(self, resource: ResourceId, group: _Group) -> Iterable[Action]:
        rivals = self.sharing.preemptive and len(group.admitted) > 1
        if not group.waiting and not rivals:
            return
        before = {t.request.job.id: t for t in group.admitted}
        holding: list[str] = []
        if self.sharing.preemptive:
            for holder in group.admitted:
                holder.turn = self.sharing.turn(holder.request, self._view)
                holding.append(self._queue_name(holder.request.job))
                insort(group.waiting.setdefault(holding[-1], []), holder)
            group.admitted = []
        if self.sharing.dynamic:
            for queue in group.waiting.values():
                for waiting in queue:
                    waiting.turn = self.sharing.turn(waiting.request, self._view)
                queue.sort()
        while group.waiting and group.has_room():
            group.admitted.append(group.next(holding))
        now = {t.request.job.id for t in group.admitted}
        for turn in sorted(turn for job, turn in before.items() if job not in now):
            yield Hold(job=turn.request.job.id, resource=resource)
        for turn in group.admitted:
            if turn.request.job.id not in before:
                yield self._admit(turn.request, resource)

    def _queue_name(self, job: Job) -> str:
        return job.user if self._fair_users else ""

    def _admit(self, request: Request, resource: ResourceId) -> Admit:
        job = request.job
        weight = self._phases[job.id].weight
        return Admit(job=job.id, resource=resource, weight=weight, max_share=job.max_share)
