"""The live host of the Manager: what agents tell comes in, what they are told goes out.

The file system is one resource that all phases share, as in paper io-sets (Section III): how many
I/O nodes a job goes through is another question, for the arbiter. No clock and no sockets here:
the controller has those.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from penstock.core.ledger import Ledger, decide
from penstock.core.manager import Manager
from penstock.live.protocol import messages
from penstock.model import (
    Action,
    Admit,
    Assign,
    Event,
    Hold,
    Job,
    JobEnded,
    JobId,
    JobStarted,
    PhaseBegan,
    PhaseEnded,
    ResourceId,
    WakeAt,
    Woke,
)

FILE_SYSTEM: ResourceId = 0
FADES = 0.05
"""The best bandwidth that a job has shown counts less by this part with every later phase."""

Order = tuple[JobId, messages.Turn | messages.Hold] | Assign | WakeAt
"""What the controller shall do: tell a job, give it I/O nodes, or come back."""


@dataclass(slots=True, kw_only=True)
class Phase:
    """A phase under way."""

    number: int
    began: float
    since: float  # when it last began to wait
    admitted: float | None = None  # when; None: it waits
    waited: float = 0.0  # seconds until it was last admitted, or let go
    weight: float = 1.0
    overdue: bool = False  # it waited for too long, and transfers out of turn
    alone: bool = True  # no other phase was under way meanwhile

    def waited_until(self, now: float) -> float:
        """Return how long it has waited in all, the wait under way included."""
        waits = self.admitted is None and not self.overdue
        return self.waited + (now - self.since if waits else 0.0)

    def let_go(self, now: float) -> None:
        """End its wait, without a turn."""
        self.waited, self.overdue = self.waited_until(now), True


@dataclass(slots=True, kw_only=True)
class TurnState:
    """How a job stands: its phase under way, and what it did before."""

    phase: Phase | None = None
    untold: Phase | None = None  # it lent its turn, or nobody heard of it: its end is to come
    phases: int = 0
    bytes: int = 0
    waited: float = 0.0
    transferred: float = 0.0
    bandwidth: float = 0.0  # bytes a second: the best of its phases
    alone: bool = False  # in one of them nobody else did I/O: that is its own bandwidth
    volume: float | None = None  # bytes of a phase, as its user or its family says
    heard: float = 0.0

    def isolated(
        self, moved: int, seconds: float, *, alone: bool = True, site: float | None = None
    ) -> float:
        """Return how long a phase would have taken alone, and learn from it.

        Beside others a job shows less than it can: until it was seen alone, the `site`'s bandwidth
        counts where that is more.
        """
        if moved <= 0 or seconds <= 0:
            return max(seconds, 0.0)
        self.bandwidth = max(moved / seconds, self.bandwidth * (1 - FADES))
        self.alone = self.alone or alone
        usual = 0.0 if self.alone or site is None else site
        return moved / max(self.bandwidth, usual)

    def expected_bytes(self) -> float | None:
        """Return what a phase moves: as those before it, else by its user's or family's word."""
        return self.bytes / self.phases if self.phases else self.volume


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a phase is expected to be before it begins; None: nobody knows."""

    seconds: float | None  # alone
    bytes: float | None
    resumes: bool = False  # it goes on with a turn that it lent


class PhaseObserver(Protocol):
    """Who is told of phases as they come and go, for people to look at."""

    def asked(self, job: JobId, expected: Expected) -> None:
        """A phase is about to begin."""
        ...

    def stands(self, job: JobId) -> None:
        """A phase waits, or transfers, from now on."""
        ...

    def over(self, job: JobId, time: float, told: messages.PhaseEnded | None) -> None:
        """A phase was over at a time; `told` is what its job says of it, if it does."""
        ...


class NoObserver:
    """Nobody looks."""

    def asked(self, job: JobId, expected: Expected) -> None:
        """Pass it over."""

    def stands(self, job: JobId) -> None:
        """Pass it over."""

    def over(self, job: JobId, time: float, told: messages.PhaseEnded | None) -> None:
        """Pass it over."""


@dataclass(slots=True)
class Turns:
    """Who may transfer now, of the jobs of one file system."""

    manager: Manager
    ledger: Ledger
    record: Callable[[Event, Sequence[Action], int | None, bool], None] = lambda *_: None
    states: dict[JobId, TurnState] = field(default_factory=dict)
    turns: int = 0  # given so far
    fastest: float = 0.0  # bytes a second, of all phases so far
    watch: PhaseObserver = field(default_factory=NoObserver)
    _under_way: set[JobId] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self.ledger.attend(self.manager)

    def started(
        self, now: float, job: Job, bandwidth: float = 0.0, volume: float | None = None
    ) -> list[Order]:
        """A job begins; `bandwidth` is what its like have shown, `volume` what a phase moves."""
        self.states[job.id] = TurnState(bandwidth=bandwidth, heard=now, volume=volume)
        return self._orders(JobStarted(time=now, job=job))

    def ended(self, now: float, job: JobId) -> list[Order]:
        """A job is gone, perhaps amid a phase."""
        if job not in self.states:
            return []
        try:
            orders = self._cut(now, job)
        finally:  # whatever a policy raises, the job is gone
            del self.states[job]
            after = self._orders(JobEnded(time=now, job=job))
        return orders + after

    def ended_unheard(self, now: float, job: JobId) -> list[Order]:
        """A job ended that began under an earlier controller, and never came here."""
        return [] if job in self.states else self._orders(JobEnded(time=now, job=job))

    def phase_began(
        self,
        now: float,
        job: JobId,
        number: int,
        volume: float | None = None,
        *,
        resumes: bool = False,
    ) -> list[Order]:
        """A job asks for its turn, to move so many bytes if it says so; or for one that it lent."""
        standing = self.states[job]
        try:
            orders = self._cut(now, job)  # what it did not tell the end of
        finally:  # it asked, whatever a policy raises: who lets all go on finds it here
            standing.heard = now
            standing.phase = Phase(number=number, began=now, since=now, alone=self._joined(job))
        untold, standing.untold = standing.untold, None
        if resumes and untold is not None:
            standing.phase.waited = untold.waited
        io = self._length(job, volume)
        moves = standing.expected_bytes() if volume is None else volume
        resumed = resumes and untold is not None
        self.watch.asked(job, Expected(seconds=io, bytes=moves, resumes=resumed))
        began = PhaseBegan(
            time=now,
            job=job,
            resources=(FILE_SYSTEM,),
            io=io,
            resumes=resumed,
        )
        orders += self._orders(began)
        if standing.phase.admitted is None:
            self.watch.stands(job)
            orders.append((job, messages.Hold(phase=number, behind=self.manager.ahead_of(job))))
        return orders

    def lent(self, now: float, job: JobId) -> list[Order]:
        """A job lends its turn: as if its phase had not begun, until it resumes."""
        standing = self.states[job]
        standing.untold = standing.phase
        return self._cut(now, job)

    def phase_ended(self, now: float, job: JobId, told: messages.PhaseEnded) -> list[Order]:
        """A job's phase is over, some time ago."""
        standing = self.states[job]
        standing.heard, standing.untold = now, None
        phase = standing.phase
        if phase is None or phase.number != told.phase:
            return []
        if told.small:
            return self._end(now, job, 0.0, told)
        standing.phases += 1
        standing.bytes += told.bytes
        # It knows best how long it waited, with and without a controller; who is observed did not.
        standing.waited += told.waited or phase.waited
        standing.transferred += told.seconds
        io = standing.isolated(
            told.bytes, told.seconds, alone=phase.alone, site=self.ledger.site.bandwidth
        )
        self.fastest = max(self.fastest, standing.bandwidth)
        return self._end(now, job, io, told)

    def woke(self, now: float) -> list[Order]:
        """A time has come that the Manager asked for."""
        return self._orders(Woke(time=now))

    def overdue(self, now: float, longest: float) -> list[Order]:
        """Let those go who waited for longer than anybody shall; their place stays as it is."""
        late = [job for job, phase in self.waiting() if now - phase.began >= longest]
        return [order for job in late for order in self._let_go(now, job)]

    def failed(self, now: float) -> list[Order]:
        """Let all go on who wait: it may be for what a policy should have said."""
        waiting = list(self.waiting())
        for job, phase in waiting:
            phase.let_go(now)
            self.watch.stands(job)
        return [
            (job, messages.Turn(phase=phase.number, overdue=True, failed=True))
            for job, phase in waiting
        ]

    def silent(self, now: float, longest: float) -> list[Order]:
        """Take their turn from those whom nobody heard for so long: others wait for them."""
        gone = [
            job
            for job, standing in self.states.items()
            if standing.phase is not None and now - standing.heard >= longest
        ]
        for standing in map(self.states.__getitem__, gone):
            if (phase := standing.phase) is not None:
                phase.let_go(now)
                standing.untold = phase
        return [order for job in gone for order in self._cut(now, job)]

    def forgive(self, now: float) -> None:
        """Hold nobody's silence against it: there was nobody to hear."""
        for standing in self.states.values():
            standing.heard = now

    def waiting(self) -> Iterator[tuple[JobId, Phase]]:
        """Yield who waits for a turn."""
        for job, standing in self.states.items():
            phase = standing.phase
            if phase is not None and phase.admitted is None and not phase.overdue:
                yield job, phase

    def weights(self) -> dict[JobId, float]:
        """Return the weights of those who transfer."""
        return {
            job: standing.phase.weight
            for job, standing in self.states.items()
            if standing.phase is not None and standing.phase.admitted is not None
        }

    def share(self, job: JobId) -> float:
        """Return the part of the file system that a job has by right now."""
        weights = self.weights()
        return weights[job] / sum(weights.values()) if job in weights else 0.0

    def _length(self, job: JobId, told: float | None) -> float | None:
        """Return how long a phase will be, alone; None: nobody knows.

        As it says itself, else as its earlier phases were, else by its user's or family's word.
        """
        standing = self.states[job]
        if told is None and (mean := self.ledger.expected_io(job)) is not None:
            return mean
        volume = standing.volume if told is None else told
        # One bandwidth for all, where the site says so: equal volumes are then equally long.
        bandwidth = self.ledger.site.bandwidth or standing.bandwidth or self.fastest
        return volume / bandwidth if volume is not None and bandwidth else None

    def _joined(self, job: JobId) -> bool:
        """Take a phase in, and return whether no other is under way.

        One that waits counts too: where turns are only observed, it transfers.
        """
        for other in self._under_way if len(self._under_way) == 1 else ():
            if (phase := self.states[other].phase) is not None:
                phase.alone = False
        alone = not self._under_way
        self._under_way.add(job)
        return alone

    def _let_go(self, now: float, job: JobId) -> Iterator[Order]:
        phase = self.states[job].phase
        if phase is not None:
            phase.let_go(now)
            self.watch.stands(job)
            yield job, messages.Turn(phase=phase.number, weight=phase.weight, overdue=True)

    def _cut(self, now: float, job: JobId) -> list[Order]:
        phase = self.states[job].phase
        return [] if phase is None else self._end(now, job, 0.0)

    def _end(
        self, now: float, job: JobId, io: float, told: messages.PhaseEnded | None = None
    ) -> list[Order]:
        self.states[job].phase = None
        self._under_way.discard(job)
        idle = 0.0 if told is None else max(told.idle, 0.0)
        self.watch.over(job, now - idle, told)
        if not self.manager.in_phase(job):
            return []
        ended = PhaseEnded(time=now, job=job, resource=FILE_SYSTEM, io=io, idle=idle)
        return self._orders(ended, None if told is None else told.bytes)

    def _orders(self, event: Event, moved: int | None = None) -> list[Order]:
        try:
            event, actions = decide(self.manager, self.ledger, event)
        except Exception:
            # Ledger and Manager have taken it in so far: a replay must, too.
            self.record(replace(event, time=self.ledger.now), (), moved, True)
            raise
        self.record(event, actions, moved, False)
        return [order for action in actions for order in self._order(action)]

    def _order(self, action: Action) -> Iterator[Order]:
        match action:
            case Assign() | WakeAt():
                yield action
            case Admit():
                phase = self.states[action.job].phase
                assert phase is not None
                phase.waited = phase.waited_until(self.ledger.now)
                phase.admitted, phase.weight = self.ledger.now, action.weight
                self.turns += 1
                self.watch.stands(action.job)
                yield action.job, messages.Turn(phase=phase.number, weight=action.weight)
            case Hold():
                phase = self.states[action.job].phase
                assert phase is not None
                phase.admitted, phase.since = None, self.ledger.now
                self.watch.stands(action.job)
                behind = self.manager.ahead_of(action.job)
                yield action.job, messages.Hold(phase=phase.number, behind=behind)
