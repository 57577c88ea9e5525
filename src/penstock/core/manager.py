"""The sans-I/O heart: events in, actions out; identical behind the simulator and the controller.

It holds the one turn logic of Penstock. A phase asks for all its resources in one event, with one
key (turn, arrival, serial), so every resource orders jobs alike. A group admits its next job while
the caps of those admitted sum to less than one; in a preemptive policy the choice is made anew at
every event of the resource, and who loses it is held. The native engine has the same logic in C++;
tests keep the two equal to the last bit.

On a live site a group may be fair to users besides: each has a queue of its own, in the policy's
order, and a free place goes to the user whose turn was longest ago. A preemptive policy chooses
anew among the jobs of the users that have a place; they keep it until a phase of theirs ends. Where
all jobs are one user's, nothing is another than without.
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
    """Who waits (in order, by whom turns alternate between) and who transfers, on one resource."""

    waiting: dict[str, list[_Turn]] = field(default_factory=dict)
    admitted: list[_Turn] = field(default_factory=list)
    served: dict[str, int] = field(default_factory=dict)  # which turn was each one's last
    turns: int = 0

    def has_room(self) -> bool:
        return math.fsum(t.request.job.max_share for t in self.admitted) < 1.0

    def leave(self, job: JobId) -> None:
        self.admitted = [t for t in self.admitted if t.request.job.id != job]
        for of, queue in self.waiting.items():
            if any(t.request.job.id == job for t in queue):  # its wait was cut short
                self.waiting[of] = [t for t in queue if t.request.job.id != job]
        self.waiting = {of: queue for of, queue in self.waiting.items() if queue}

    def next(self, holding: list[str]) -> _Turn:
        """Take whose turn it is: of those who hold a place, else of who was served longest ago."""
        of = min(self.waiting, key=lambda of: (of not in holding, *self._key(of)))
        turn = self.waiting[of].pop(0)
        if not self.waiting[of]:
            del self.waiting[of]
        if of in holding:
            holding.remove(of)
        else:
            self.turns += 1
            self.served[of] = self.turns
        return turn

    def queue(self) -> list[JobId]:
        """Return who waits, in the order in which turns would come if nobody else did."""
        users = sorted(self.waiting, key=self._key)
        rounds = zip_longest(*(self.waiting[of] for of in users))
        return [turn.request.job.id for turns in rounds for turn in turns if turn is not None]

    def _key(self, of: str) -> tuple[int, _Turn]:
        return self.served.get(of, 0), self.waiting[of][0]


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
    says which resources jobs get when one starts or ends, or is None where they have their own;
    `fair_users` alternates the turns of a group between users.
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
            queue = mates.queue()
            if job in queue:
                ahead |= dict.fromkeys(turn.request.job.id for turn in mates.admitted)
                ahead |= dict.fromkeys(queue[: queue.index(job)])
        return list(ahead)

    def queues(self) -> Iterable[tuple[list[JobId], list[JobId]]]:
        """Yield who transfers and who waits, in the order of turns, of each group that waits."""
        for mates in self._groups.values():
            if mates.waiting:
                yield [turn.request.job.id for turn in mates.admitted], mates.queue()

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
        self._phases[job.id] = _Phase(request, group, weight, set(event.resources))
        for resource in event.resources:
            if group is Own.GROUP:
                yield self._admit(request, resource)
                continue
            mates = self._groups.setdefault((resource, group), _Group())
            turn = self.sharing.turn(request, self._view)
            queue = mates.waiting.setdefault(self._of(job), [])
            insort(queue, _Turn(turn, event.time, job.serial, request))
            yield from self._choose(resource, mates)

    def _end(self, event: PhaseEnded) -> Iterable[Action]:
        phase = self._phases[event.job]
        taken = event.resource in phase.open_resources
        phase.open_resources.discard(event.resource)
        # Before anybody is asked who comes next: a policy may raise, and the phase is over.
        if not phase.open_resources:
            del self._phases[event.job]
            if event.job in self._periods:
                self._periods[event.job].ended(event.time - event.idle, event.io)
        if taken and phase.group is not Own.GROUP:
            mates = self._groups[event.resource, phase.group]
            mates.leave(event.job)
            yield from self._choose(event.resource, mates)

    def _choose(self, resource: ResourceId, group: _Group) -> Iterable[Action]:
        rivals = self.sharing.preemptive and len(group.admitted) > 1
        if not group.waiting and not rivals:
            return
        before = {t.request.job.id: t for t in group.admitted}
        holding: list[str] = []
        if self.sharing.preemptive:
            for holder in group.admitted:
                holder.turn = self.sharing.turn(holder.request, self._view)
                holding.append(self._of(holder.request.job))
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

    def _of(self, job: Job) -> str:
        return job.user if self._fair_users else ""

    def _admit(self, request: Request, resource: ResourceId) -> Admit:
        job = request.job
        weight = self._phases[job.id].weight
        return Admit(job=job.id, resource=resource, weight=weight, max_share=job.max_share)
