"""Who transfers now: phases as agents report them in, actions of the Manager out.

The file system is one resource that all phases share, as in paper io-sets (Section III); how many
I/O nodes a job has is the arbiter's decision. There is no clock, socket or message here: the turn
service has those.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.core.ledger import Ledger, decide
from penstock.core.manager import Manager
from penstock.core.wait import Wait, heaviest, release_overdue
from penstock.learn.observations import ObservedPhase
from penstock.learn.phases import MEASURABLE
from penstock.live.controller.io_node_map import IoNodePath
from penstock.model import (
    Action,
    Admit,
    Curve,
    Event,
    Hold,
    Job,
    JobEnded,
    JobId,
    JobStarted,
    NodeDown,
    NodeUp,
    PhaseBegan,
    PhaseEnded,
    Pinned,
    ResourceId,
    Woke,
)

FILE_SYSTEM: ResourceId = 0
"""The resource of all turns. In Assign, 0 is the first I/O node: numbers of another kind."""
BANDWIDTH_DECAY = 0.05
"""Part by which a job's best bandwidth counts less with every later phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The job transfers without a turn: it waited too long, or the policy `failed`.

    No action: the Manager does not decide it, and no record contains it.
    """

    job: JobId
    weight: float = 1.0
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseReport:
    """A phase that is over, as its job measured it."""

    number: int
    bytes: int
    seconds: float  # from its turn, or its beginning if there was none, to its last call
    waited: float  # seconds
    idle: float = 0.0  # seconds since its last call
    small: bool = False  # it turned out too small to count as a phase


@dataclass(slots=True, kw_only=True)
class Phase(Wait):
    """A phase in progress."""

    number: int
    alone: bool = True  # no other phase moved data while it did
    compute: float | None = None  # seconds before it
    paths: Mapping[JobId, IoNodePath] = field(default_factory=dict)  # of its members, at its start
    mode: str = "enforce"  # of its job, now
    observed: bool = False  # for a part of it at least, its job was not made to wait

    def set_mode(self, mode: str) -> None:
        """Note the mode of its job from now on."""
        self.mode = mode
        self.observed = self.observed or mode != "enforce"

    def resume(self, suspended: "Phase") -> None:
        """Continue a phase that yielded its turn, or fell silent.

        What it transferred until then took longer than it takes without an interruption.
        """
        self.waited, self.compute, self.alone = suspended.waited, suspended.compute, False
        self.observed = self.observed or suspended.observed

    @property
    def moves_since(self) -> float | None:
        """When it began to move data; None: it waits. A phase that is observed never waits."""
        return self.transfers_since if self.mode == "enforce" else self.began


@dataclass(slots=True, kw_only=True)
class TurnState:
    """A job's phase in progress, and totals over its earlier ones."""

    phase: Phase | None = None
    suspended: Phase | None = None  # it yielded its turn, or fell silent: its end is to come
    phases: int = 0
    bytes: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    """Its phases by the mode in which they ended."""
    waited: float = 0.0
    would_have_waited: float = 0.0  # in phases, or parts of them, that were only observed
    transferred: float = 0.0
    curve: Curve | None = None  # of its application
    io_nodes: int | None = None  # how many it has; None: not known
    bandwidth: float = 0.0  # bytes per second with those: of its best phase, fading, or its curve
    best: float = 0.0  # bytes per second, of the best phase of this run
    alone: bool = False  # one of its phases was alone: `bandwidth` is what it can do
    volume: float | None = None  # bytes per phase, according to its user or its application
    idle_since: float | None = None  # the end of its last phase, or its start; None: not known
    last_report: float = 0.0

    def use(self, io_nodes: int | None) -> None:
        """It has this many I/O nodes: what it did with another number says nothing."""
        if io_nodes != self.io_nodes:
            self.io_nodes, self.bandwidth, self.alone = io_nodes, 0.0, False
            if self.curve is not None and io_nodes in self.curve.counts:
                self.bandwidth = self.curve.bandwidth(io_nodes)

    def observation(self, phase: Phase, report: PhaseReport) -> ObservedPhase:
        """Return what a phase that is over shows of the application."""
        return ObservedPhase(
            bytes=report.bytes,
            seconds=round(report.seconds, 6),
            alone=phase.alone,
            compute=None if phase.compute is None else round(phase.compute, 6),
            first=self.phases == 0,
        )

    def isolated(
        self, moved: int, seconds: float, *, alone: bool = True, site: float | None = None
    ) -> float:
        """Return how long a phase would have taken alone, and update the bandwidth.

        Beside others a job shows less than it can do: until one of its phases was alone, the
        `site`'s bandwidth counts if it is higher. A phase too short to measure counts as reported.
        """
        if moved <= 0 or seconds < MEASURABLE:
            return max(seconds, 0.0)
        self.best = max(moved / seconds, self.best)
        self.bandwidth = max(moved / seconds, self.bandwidth * (1 - BANDWIDTH_DECAY))
        self.alone = self.alone or alone
        usual = 0.0 if self.alone or site is None else site
        return moved / max(self.bandwidth, usual)

    def expected_bytes(self) -> float | None:
        """Return the bytes of its next phase: the mean so far, else `volume`."""
        return self.bytes / self.phases if self.phases else self.volume


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEstimate:
    """What a phase is expected to be before it begins; None: not known."""

    seconds: float | None  # alone
    bytes: float | None
    resumes: bool = False  # it continues a phase that yielded its turn


class PhaseObserver:
    """Follows phases as they come and go, for the dashboard; this one ignores them."""

    def phase_expected(self, job: JobId, estimate: PhaseEstimate) -> None:
        """A phase is about to begin."""

    def phase_changed(self, job: JobId) -> None:
        """A phase waits, or transfers, from now on."""

    def phase_ended(self, job: JobId, time: float, report: PhaseReport | None) -> None:
        """A phase ended at a time; without a report it was interrupted."""


@dataclass(slots=True)
class Turns:
    """The turns of the jobs of one file system; every method returns what to do."""

    manager: Manager
    ledger: Ledger
    record: Callable[[Event, Sequence[Action], int | None, bool, float | None], None] = lambda *_: (
        None
    )
    states: dict[JobId, TurnState] = field(default_factory=dict)
    turns: int = 0  # given so far
    fastest: float = 0.0  # bytes per second, over all phases so far
    observer: PhaseObserver = field(default_factory=PhaseObserver)
    _in_phase: set[JobId] = field(default_factory=set, init=False)
    _silent: set[JobId] = field(default_factory=set, init=False)
    """Jobs whose turn was taken, and which may still be transferring."""

    def __post_init__(self) -> None:
        self.ledger.attend(self.manager)

    def started(
        self, now: float, job: Job, volume: float | None = None, *, resumes: bool = False
    ) -> list[Action]:
        """A job begins, or `resumes`; `volume`: bytes per phase, as its user or the store says."""
        self.states[job.id] = TurnState(
            curve=job.own_curve, last_report=now, volume=volume, idle_since=None if resumes else now
        )
        return self._handle(JobStarted(time=now, job=job))

    def ended(self, now: float, job: JobId) -> list[Action]:
        """A job is gone, possibly during a phase."""
        if job not in self.states:
            return []
        try:
            actions = self._interrupt(now, job)
        finally:  # whatever a policy raises, the job is gone
            del self.states[job]
            self._silent.discard(job)
            after = self._handle(JobEnded(time=now, job=job))
        return actions + after

    def ended_elsewhere(self, now: float, job: JobId) -> list[Action]:
        """A job ended that began under an earlier controller and never reconnected."""
        return [] if job in self.states else self._handle(JobEnded(time=now, job=job))

    def phase_began(
        self,
        now: float,
        job: JobId,
        number: int,
        volume: float | None = None,
        *,
        resumes: bool = False,
        transferring: float | None = None,
        mode: str = "enforce",
    ) -> list[Action]:
        """A job asks for its turn, to move `volume` bytes if it says so.

        `resumes`: it asks again for a turn that it yielded. `transferring`: it has been
        transferring for these seconds, and continues whether or not it gets a turn.
        """
        state = self.states[job]
        try:
            actions = self._interrupt(now, job)  # a phase whose end was not reported
        finally:  # whatever a policy raises: the phase is there to be released
            state.last_report = now
            state.phase = Phase(number=number, began=now, since=now)
            if state.idle_since is not None:
                state.phase.compute = max(now - state.idle_since, 0.0)
            self._in_phase.add(job)
            self._silent.discard(job)
            state.phase.set_mode(mode)
            if transferring is not None:
                state.phase.weight = self._heaviest()
                state.phase.began -= transferring
                state.phase.released, state.phase.transfers_since = True, state.phase.began
                state.phase.alone = False  # nobody knows what it was beside
        suspended, state.suspended = state.suspended, None
        resumed = resumes and suspended is not None
        if suspended is not None and resumed:
            state.phase.resume(suspended)
        io = self.expected_seconds(job, volume)
        moves = state.expected_bytes() if volume is None else volume
        self.observer.phase_expected(job, PhaseEstimate(seconds=io, bytes=moves, resumes=resumed))
        event = PhaseBegan(time=now, job=job, resources=(FILE_SYSTEM,), io=io, resumes=resumed)
        actions += self._handle(event)
        if state.phase.admitted is None:
            self.observer.phase_changed(job)
            if state.phase.is_waiting:
                actions.append(Hold(job=job, resource=FILE_SYSTEM))
        self.note_overlap()
        return actions

    def yield_turn(self, now: float, job: JobId) -> list[Action]:
        """A job yields its turn: as if its phase had not begun, until it resumes."""
        state = self.states[job]
        state.suspended = state.phase
        return self._interrupt(now, job)

    def phase_ended(self, now: float, job: JobId, report: PhaseReport) -> list[Action]:
        """A job reports that its phase is over."""
        state = self.states[job]
        state.last_report, state.suspended = now, None
        self._silent.discard(job)
        phase = state.phase
        if phase is None or phase.number != report.number:
            return []
        if report.small:
            return self._end(now, job, 0.0, report)
        state.phases += 1
        state.bytes += report.bytes
        state.modes[phase.mode] += 1
        # The job knows its real wait; the controller knows the wait of a job that is observed.
        state.waited += report.waited
        if phase.observed:
            state.would_have_waited += max(phase.waited - report.waited, 0.0)
        state.transferred += report.seconds
        io = state.isolated(
            report.bytes, report.seconds, alone=phase.alone, site=self.ledger.site.bandwidth
        )
        self.fastest = max(self.fastest, state.bandwidth)
        return self._end(now, job, io, report)

    def woke(self, now: float) -> list[Action]:
        """The time of an earlier WakeAt has come."""
        return self._handle(Woke(time=now))

    def resources_changed(self, event: NodeUp | NodeDown | Pinned) -> list[Action]:
        """A resource comes or goes, or a job is pinned to some."""
        return self._handle(event)

    def release_overdue(self, now: float, longest: float) -> list[Release]:
        """Release phases that waited for longer than any may; their order stays as it is."""
        weight = self._heaviest()
        overdue = list(release_overdue(list(self.waiting()), now, longest, lambda _: weight))
        for job, _ in overdue:
            self.observer.phase_changed(job)
        self.note_overlap()
        return [Release(job=job, weight=phase.weight) for job, phase in overdue]

    def release_all(self, now: float) -> list[Release]:
        """Release all waiting phases: the policy that should have admitted them failed."""
        waiting, weight = list(self.waiting()), self._heaviest()
        for job, phase in waiting:
            phase.release(now, weight)
            self.observer.phase_changed(job)
        self.note_overlap()
        return [Release(job=job, weight=weight, failed=True) for job, _ in waiting]

    def suspend_silent(self, now: float, longest: float) -> list[Action]:
        """Take the turns of jobs that have not reported for this long: others wait for them."""
        silent = [
            job
            for job, state in self.states.items()
            if state.phase is not None and now - state.last_report >= longest
        ]
        for state in map(self.states.__getitem__, silent):
            if (phase := state.phase) is not None:
                phase.release(now, phase.weight)
                state.suspended = phase
        self._silent.update(silent)
        return [action for job in silent for action in self._interrupt(now, job)]

    def excuse_silence(self, now: float) -> None:
        """Count all jobs as just heard: the controller itself was stopped."""
        for state in self.states.values():
            state.last_report = now

    def waiting(self) -> Iterator[tuple[JobId, Phase]]:
        """Yield the jobs that wait for a turn."""
        for job, state in self.states.items():
            if state.phase is not None and state.phase.is_waiting:
                yield job, state.phase

    def weights(self) -> dict[JobId, float]:
        """Return the weights of the jobs that transfer, with or without a turn."""
        return {
            job: state.phase.weight
            for job, state in self.states.items()
            if state.phase is not None and not state.phase.is_waiting
        }

    def has_turn(self, job: JobId) -> bool:
        """Tell whether a job has its turn; without one, it may transfer after a release."""
        phase = self.states[job].phase
        return phase is not None and phase.admitted is not None

    def _heaviest(self) -> float:
        """Return the weight of a phase that transfers without a turn from now on."""
        return heaviest(state.phase for state in self.states.values() if state.phase is not None)

    def share(self, job: JobId) -> float:
        """Return the part of the file system that a job is granted now."""
        weights = self.weights()
        return weights[job] / sum(weights.values()) if job in weights else 0.0

    def expected_seconds(self, job: JobId, volume: float | None = None) -> float | None:
        """Return how long a phase will be, alone; None: not known.

        By the `volume` that it announces, else like the job's earlier phases, else by the volume
        that its user or family says.
        """
        state = self.states[job]
        if volume is None and (mean := self.ledger.expected_io(job)) is not None:
            return mean
        volume = state.volume if volume is None else volume
        # One bandwidth for all, if the site declares it: equal volumes are then equally long.
        bandwidth = self.ledger.site.bandwidth or state.bandwidth or self.fastest
        return volume / bandwidth if volume is not None and bandwidth else None

    def note_overlap(self) -> None:
        """Note which phases move data beside others now: they show less than their jobs can do.

        A phase that waits for its turn moves nothing, unless its job is only observed.
        """
        moving = [
            phase
            for job in self._in_phase
            if (phase := self.states[job].phase) is not None and phase.moves_since is not None
        ]
        if len(moving) + len(self._silent) > 1:
            for phase in moving:
                phase.alone = False

    def _interrupt(self, now: float, job: JobId) -> list[Action]:
        return [] if self.states[job].phase is None else self._end(now, job, 0.0)

    def _end(
        self, now: float, job: JobId, io: float, report: PhaseReport | None = None
    ) -> list[Action]:
        state = self.states[job]
        state.phase = None
        self._in_phase.discard(job)
        idle = 0.0 if report is None else max(report.idle, 0.0)
        if report is None:
            state.idle_since = None
        elif not report.small:  # a job that moves little computes all the while
            state.idle_since = now - idle
        self.observer.phase_ended(job, now - idle, report)
        if not self.manager.in_phase(job):
            return []
        event = PhaseEnded(time=now, job=job, resource=FILE_SYSTEM, io=io, idle=idle)
        return self._handle(event, report)

    def _handle(self, event: Event, report: PhaseReport | None = None) -> list[Action]:
        moved = None if report is None else report.bytes
        seconds = None if report is None else report.seconds
        try:
            event, actions = decide(self.manager, self.ledger, event)
        except BaseException:
            # Ledger and Manager have handled a part of it: so must a replay.
            self.record(replace(event, time=self.ledger.now), (), moved, True, seconds)
            raise
        self.record(event, actions, moved, False, seconds)
        for action in actions:
            self._apply(action)
        if actions:
            self.note_overlap()
        return actions

    def _apply(self, action: Action) -> None:
        """Update a job's phase by what was decided."""
        now = self.ledger.now
        match action:
            case Admit(job=job) if self._phase(job).admitted is not None:
                self._phase(job).weight = action.weight  # it has its turn, with a new weight
            case Admit(job=job):
                self._phase(job).admit(now, action.weight)
                self.turns += 1
                self.observer.phase_changed(job)
            case Hold(job=job):
                self._phase(job).hold(now)
                self.observer.phase_changed(job)

    def begins_turn(self, job: JobId) -> bool:
        """Tell whether the last event gave the job a turn, and not only a new weight."""
        phase = self.states[job].phase if job in self.states else None
        return phase is None or phase.admitted == self.ledger.now

    def _phase(self, job: JobId) -> Phase:
        phase = self.states[job].phase
        assert phase is not None
        return phase
