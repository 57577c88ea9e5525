"""The decisions of Penstock: events in, actions out, the same in simulator and controller.

This is the one turn logic. Events are heard, then decided on: a simulator hears all events of one
instant before it asks for a decision, a live controller decides after each. A phase requests all
its resources in one event, with one key (turn, arrival, serial), so every resource orders jobs
alike. A group admits its next job while it has a free place, or while the `max_share` of the
admitted jobs sum to less than one; a preemptive policy chooses again at every event of the
resource, and a job that loses its place is held. The native engine has the same logic in C++;
tests keep the two equal to the last bit.

On a live site a group can also be fair to users: each user has a queue, in the policy's order, and
a free place goes to the user whose last turn is longest ago. A preemptive policy then chooses
among the jobs of the users that have a place; a user keeps it until one of its phases ends. With a
single user the order is unchanged.
"""

import math
from bisect import insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
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
    JobsChanged,
    JobStarted,
    PhaseBegan,
    PhaseEnded,
    ReadOnlyView,
    Request,
    ResourceId,
    View,
    WakeAt,
    Woke,
)
from penstock.policies.base import Own, Rule, Sharing

SQUEEZED = 1e-6
"""The weight, relative to its own, of a job that has what others of its group leave."""


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
    squeezed: bool = False  # the last that was admitted has what the others leave
    served: dict[str, int] = field(default_factory=dict)  # number of each user's last turn
    turns: int = 0

    def has_room(self, places: int) -> bool:
        if len(self.admitted) < places:
            return True
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
    weights: dict[ResourceId, float]  # in force
    open_resources: set[ResourceId]
    transfers: set[ResourceId] = field(default_factory=set)


class QueueIndex:
    """Who waits for whom at one moment: each queue is put in order once, when it is needed."""

    def __init__(
        self,
        groups: Mapping[tuple[ResourceId, Hashable], _Group],
        phases: Mapping[JobId, _OpenRequest],
    ) -> None:
        self._groups, self._phases = groups, phases
        self._queues: dict[tuple[ResourceId, Hashable], tuple[list[JobId], dict[JobId, int]]] = {}

    def ahead_of(self, job: JobId, most: int | None = None) -> tuple[list[JobId], int]:
        """Return the jobs that a waiting phase waits for, `most` at most, and how many there are.

        Those admitted come first, then those before it. On several resources the number is that of
        the longest queue, or of those returned if they are more.
        """
        ahead: dict[JobId, None] = {}
        longest = 0
        for queue, places in self._queues_of(job):
            if (place := places.get(job)) is not None:
                ahead |= dict.fromkeys(queue[: place if most is None else min(place, most)])
                longest = max(longest, place)
        return list(ahead)[:most], max(longest, len(ahead))

    def is_ahead(self, job: JobId, of: JobId) -> bool:
        """Tell whether a waiting phase waits for a job."""
        for queue, places in self._queues_of(of):
            admitted = queue[: len(queue) - len(places)]
            if of in places and (job in admitted or places.get(job, math.inf) < places[of]):
                return True
        return False

    def _queues_of(self, job: JobId) -> Iterator[tuple[list[JobId], dict[JobId, int]]]:
        phase = self._phases.get(job)
        for resource in () if phase is None else sorted(phase.open_resources):
            if phase is not None and (resource, phase.group) in self._groups:
                yield self._queue((resource, phase.group))

    def _queue(self, key: tuple[ResourceId, Hashable]) -> tuple[list[JobId], dict[JobId, int]]:
        """Return the jobs of a group, those admitted first, and the places of the others."""
        if key not in self._queues:
            admitted = [turn.request.job.id for turn in self._groups[key].admitted]
            queue = [*admitted, *self._groups[key].queue()]
            places = {queue[place]: place for place in range(len(admitted), len(queue))}
            self._queues[key] = queue, places
        return self._queues[key]


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
        begins_io: Callable[[JobId], None] | None = None,
        fair_users: bool = False,
    ) -> None:
        self.rule = Rule(sharing)
        self.jobs: dict[JobId, Job] = {}
        self._view: View = ReadOnlyView(view)
        self._learn = learn
        self._arbitrate, self._begins_io = arbitrate, begins_io
        self._fair_users = fair_users
        self._periods: dict[JobId, Period] = {}
        self._phases: dict[JobId, _OpenRequest] = {}
        self._groups: dict[tuple[ResourceId, Hashable], _Group] = {}
        self._requests: list[Request] = []
        self._undecided: dict[tuple[ResourceId, Hashable], None] = {}
        self._touched: dict[ResourceId, None] = {}
        self._actions: list[Action] = []

    def handle(self, event: Event) -> list[Action]:
        """Return what to do about an event that no other one of the same instant follows."""
        return [*self.hear(event), *self.decide()]

    def hear(self, event: Event) -> list[Action]:
        """Take an event; return what to do about it that is no question of turns."""
        actions: list[Action] = []
        request = self._request(event) if isinstance(event, PhaseBegan) else None
        match event:
            case PhaseBegan() if self._begins_io is not None:
                self._begins_io(event.job)
            case PhaseEnded():
                self._end(event)
            case JobStarted():
                self.jobs[event.job.id] = event.job
                if self._learn is not None:
                    self._periods[event.job.id] = self._learn(event.job)
            case JobsChanged():
                self.jobs |= {job.id: job for job in event.jobs if job.id in self.jobs}
            case JobEnded():
                self.jobs.pop(event.job, None)
                self._periods.pop(event.job, None)
            case Woke() if self.rule.observes:
                self._undecided |= dict.fromkeys(self._groups)
                for phase in self._phases.values():
                    self._touched |= dict.fromkeys(sorted(phase.transfers))
        if (wake := self.rule.observe(event, self._view)) is not None:
            actions.append(WakeAt(time=wake))
        if request is not None:  # if the policy raised, the phase never began: see `in_phase`
            self._requests.append(request)
        if self._arbitrate is not None and not isinstance(event, PhaseBegan | PhaseEnded):
            actions += self._arbitrate(event, self._view)
        return actions

    def decide(self) -> list[Action]:
        """Return who transfers from now on, and who waits, after the events heard so far."""
        # A policy may raise anywhere: what was not decided then is decided at the next event.
        while self._requests:
            self._actions += self._open(self._requests.pop(0))
        while self._undecided:
            resource, group = key = next(iter(self._undecided))
            del self._undecided[key]
            self._actions += self._choose(resource, self._groups[resource, group])
        touched, self._touched = self._touched, {}
        if self.rule.reweighs:
            for resource in touched:
                self._actions += self._reweigh(resource)
        actions, self._actions = self._actions, []
        return actions

    def in_phase(self, job: JobId) -> bool:
        """Tell whether a phase is in progress; False for one whose policy raised an exception."""
        return job in self._phases

    def ahead_of(self, job: JobId) -> list[JobId]:
        """Return the jobs that a waiting phase waits for: those admitted, then those before it."""
        return self.queue_index().ahead_of(job)[0]

    def queue_index(self) -> "QueueIndex":
        """Return who waits for whom, until the next event."""
        return QueueIndex(self._groups, self._phases)

    def queues(self) -> Iterable[tuple[list[JobId], list[JobId]]]:
        """Yield the admitted and the waiting jobs of each group that has some waiting, in order."""
        for group in self._groups.values():
            if group.waiting:
                yield [turn.request.job.id for turn in group.admitted], group.queue()

    def period(self, job: JobId) -> Period | None:
        """Return the estimator of a job's w_iter, if it has one."""
        return self._periods.get(job)

    def _request(self, event: PhaseBegan) -> Request:
        job = self.jobs[event.job]
        period = self._periods.get(event.job)
        if (
            period is not None
            and (w_iter := period.resumed() if event.resumes else period.began(event.time))
            is not None
        ):
            job = self.jobs[event.job] = replace(job, w_iter=w_iter)
        return Request(job=job, arrival=event.time, resources=event.resources, io=event.io)

    def _open(self, request: Request) -> Iterable[Action]:
        job = request.job
        group = self.rule.group(job, self._view)
        weight = self.rule.weight(job, self._view)
        weights = dict.fromkeys(request.resources, weight)
        self._phases[job.id] = _OpenRequest(request, group, weight, weights, set(request.resources))
        for resource in request.resources:
            self._touched[resource] = None
            if group is Own.GROUP:
                yield self._admit(request, resource)
                continue
            mates = self._groups.setdefault((resource, group), _Group())
            turn = self.rule.turn(request, self._view)
            queue = mates.waiting.setdefault(self._queue_name(job), [])
            insort(queue, _Turn(turn, request.arrival, job.serial, request))
            self._undecided[resource, group] = None

    def _end(self, event: PhaseEnded) -> None:
        phase = self._phases[event.job]
        is_open = event.resource in phase.open_resources
        phase.open_resources.discard(event.resource)
        phase.transfers.discard(event.resource)
        # What a decision that raised had left to say of this phase is said no more.
        self._actions = [
            action
            for action in self._actions
            if not (
                isinstance(action, Admit | Hold)
                and (action.job, action.resource) == (event.job, event.resource)
            )
        ]
        if not phase.open_resources:
            del self._phases[event.job]
            if event.job in self._periods:
                self._periods[event.job].ended(event.time - event.idle, event.io)
        if is_open:
            self._touched[event.resource] = None
            if phase.group is not Own.GROUP:
                self._groups[event.resource, phase.group].leave(event.job)
                self._undecided[event.resource, phase.group] = None

    def _choose(self, resource: ResourceId, group: _Group) -> Iterable[Action]:
        rivals = self.rule.preemptive and (len(group.admitted) > 1 or group.squeezed)
        if not group.waiting and not rivals:
            return
        before = {t.request.job.id: t for t in group.admitted}
        holding: list[str] = []
        if self.rule.preemptive:
            for holder in group.admitted:
                holder.turn = self.rule.turn(holder.request, self._view)
                holding.append(self._queue_name(holder.request.job))
                insort(group.waiting.setdefault(holding[-1], []), holder)
            group.admitted = []
        if self.rule.dynamic:
            for queue in group.waiting.values():
                for waiting in queue:
                    waiting.turn = self.rule.turn(waiting.request, self._view)
                queue.sort()
        while group.waiting and group.has_room(self.rule.places):
            group.admitted.append(group.next(holding))
        now = {t.request.job.id for t in group.admitted}
        for turn in sorted(turn for job, turn in before.items() if job not in now):
            self._phases[turn.request.job.id].transfers.discard(resource)
            yield Hold(job=turn.request.job.id, resource=resource)
        group.squeezed = self.rule.in_order and len(group.admitted) > 1
        for turn in group.admitted:
            phase = self._phases[turn.request.job.id]
            weighed = phase.weights[resource]
            if self.rule.in_order:
                last = group.squeezed and turn is group.admitted[-1]
                phase.weights[resource] = phase.weight * (SQUEEZED if last else 1.0)
            if turn.request.job.id not in before or phase.weights[resource] != weighed:
                yield self._admit(turn.request, resource)

    def _reweigh(self, resource: ResourceId) -> Iterable[Action]:
        """Admit those that transfer again if their weight has changed."""
        transferring = [p for p in self._phases.values() if resource in p.transfers]
        for phase in sorted(transferring, key=lambda p: p.request.job.serial):
            job = self.jobs[phase.request.job.id]
            weight = self.rule.weight(job, self._view)
            if weight != phase.weights[resource]:
                phase.weights[resource] = weight
                yield self._admit(phase.request, resource)

    def _queue_name(self, job: Job) -> str:
        return job.user if self._fair_users else ""

    def _admit(self, request: Request, resource: ResourceId) -> Admit:
        job, phase = request.job, self._phases[request.job.id]
        phase.transfers.add(resource)
        if self.rule.reweighs:  # it may have waited
            phase.weights[resource] = self.rule.weight(self.jobs[job.id], self._view)
        weight = phase.weights[resource]
        return Admit(job=job.id, resource=resource, weight=weight, max_share=job.max_share)
