"""Who transfers now: phases as agents report them in, actions of the Manager out.

Turns are taken on the resources that a phase names: the file systems that it uses (paper io-sets,
Section III, of each), or the I/O nodes that it goes through, so that jobs behind different ones do
not wait for each other (paper packs, Section 4.3). How many I/O nodes a job has is the arbiter's
decision. There is no clock, socket or message here: the turn service has those.

A phase on several resources transfers as soon as it has its turn on one of them: by file system on
that one, by I/O node on all. If it waited for all, two phases could each have what the other waits
for. For the same reason a phase that comes to use another file system yields its turns, and asks
for all of them again, at once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from penstock.core.ledger import Ledger, decide
from penstock.core.manager import Manager, QueueIndex
from penstock.core.wait import heaviest, release_overdue
from penstock.identities import FIRST_FILE_SYSTEM
from penstock.live.controller.overlap import Overlap
from penstock.live.controller.turn_state import (
    Phase,
    PhaseEstimate,
    PhaseObserver,
    PhaseReport,
    Release,
    TurnState,
)
from penstock.model import (
    DIRECT_PATH,
    Action,
    Admit,
    Event,
    Hold,
    Job,
    JobEnded,
    JobId,
    JobsChanged,
    JobStarted,
    NodeDown,
    NodeUp,
    PhaseBegan,
    PhaseEnded,
    Pinned,
    ResourceId,
    Woke,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What is worked out once to describe many jobs: it costs as much as all of them."""

    queues: QueueIndex
    totals: dict[ResourceId, float] = field(default_factory=dict)


@dataclass(slots=True)
class Turns:
    """The turns of a site's jobs; every method returns what to do."""

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
    _overlap: Overlap = field(default_factory=Overlap, init=False)

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
            self.note_overlap([job])
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
        resources: tuple[ResourceId, ...] = (FIRST_FILE_SYSTEM,),
        file_systems: Iterable[ResourceId] = (FIRST_FILE_SYSTEM,),
        io_nodes: Iterable[ResourceId] = (),
        resumes: bool = False,
        transferring: float | None = None,
        mode: str = "enforce",
    ) -> list[Action]:
        """A job asks for its turn on these resources, to move `volume` bytes if it says so.

        Its data goes through `io_nodes`, whatever turns are taken on; without any it goes direct.
        `resumes`: it asks again for a turn that it yielded. `transferring`: it has been
        transferring for these seconds, and continues whether or not it gets a turn.
        """
        state = self.states[job]
        try:
            actions = self._interrupt(now, job)  # a phase whose end was not reported
        finally:  # whatever a policy raises: the phase is there to be released
            state.last_report = now
            state.phase = Phase(
                number=number,
                began=now,
                since=now,
                resources=resources,
                volume=volume,
                file_systems=frozenset(file_systems),
                io_nodes=frozenset(io_nodes),
            )
            if state.idle_since is not None:
                state.phase.compute = max(now - state.idle_since, 0.0)
            self._in_phase.add(job)
            self._silent.discard(job)
            self._overlap.leave(job)
            state.phase.set_mode(mode)
            if transferring is not None:
                state.phase.weight = self._heaviest()(state.phase)
                state.phase.began -= transferring
                state.phase.released, state.phase.transfers_since = True, state.phase.began
                state.phase.alone = state.phase.apart = False  # nobody knows what it was beside
        suspended, state.suspended = state.suspended, None
        resumed = resumes and suspended is not None
        if suspended is not None and resumed:
            state.phase.resume(suspended)
        io = self.expected_seconds(job, volume, resources)
        moves = state.expected_bytes() if volume is None else volume
        self.observer.phase_expected(job, PhaseEstimate(seconds=io, bytes=moves, resumes=resumed))
        event = PhaseBegan(time=now, job=job, resources=resources, io=io, resumes=resumed)
        actions += self._handle(event)
        if not resources:  # there is nothing to wait for, and nothing for the Manager to say
            turn = Admit(job=job, resource=DIRECT_PATH, weight=1.0, max_share=1.0)
            self._apply(turn)
            actions.append(turn)
        elif state.phase.admitted is None:
            self.observer.phase_changed(job)
            if state.phase.is_waiting:
                actions.append(Hold(job=job, resource=resources[0]))
        self.note_overlap([job])
        return actions

    def widen(self, now: float, job: JobId, resources: tuple[ResourceId, ...]) -> list[Action]:
        """A phase comes to use more resources: it yields its turns, and asks for all of them."""
        state = self.states[job]
        phase = state.phase
        assert phase is not None
        actions: list[Action] = []
        try:
            actions += self.yield_turn(now, job)
        finally:  # whatever a policy raises: the phase is there to be released
            actions += self.phase_began(
                now,
                job,
                phase.number,
                phase.volume,
                resources=resources,
                file_systems=resources,
                io_nodes=phase.io_nodes,
                resumes=True,
                mode=phase.mode,
            )
            if state.phase is not None:
                state.phase.paths = phase.paths
                if phase.released:  # it goes on transferring where it does
                    state.phase.release(now, phase.weight)
                self.note_overlap([job])
        return actions

    def io_nodes_changed(self, job: JobId, io_nodes: Iterable[ResourceId]) -> None:
        """A job has these I/O nodes from now on; a phase may also use those that it had."""
        state = self.states.get(job)
        for phase in (state.phase, state.suspended) if state is not None else ():
            if phase is not None:
                phase.io_nodes |= frozenset(io_nodes)
        self.note_overlap([job])

    def file_systems_changed(self, job: JobId, file_systems: Iterable[ResourceId]) -> None:
        """A job's phase has come to use these file systems."""
        if (phase := self.states[job].phase) is not None:
            phase.file_systems |= frozenset(file_systems)
        self.note_overlap([job])

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
        self.note_overlap([job])
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
            report.bytes,
            report.seconds,
            alone=phase.alone,
            site=self.ledger.site.bandwidth_on(phase.resources),
        )
        self.fastest = max(self.fastest, state.bandwidth)
        return self._end(now, job, io, report)

    def woke(self, now: float) -> list[Action]:
        """The time of an earlier WakeAt has come."""
        return self._handle(Woke(time=now))

    def resources_changed(self, event: NodeUp | NodeDown | Pinned | JobsChanged) -> list[Action]:
        """A resource comes or goes, a job is pinned to some, or jobs are known better."""
        return self._handle(event)

    def release_overdue(self, now: float, longest: float) -> list[Release]:
        """Release phases that waited for longer than any may; their order stays as it is."""
        waiting, beside = dict(self.waiting()), self._heaviest()
        # Releases of one instant do not change each other's weight.
        weights = {job: beside(phase) for job, phase in waiting.items()}
        overdue = list(release_overdue(waiting.items(), now, longest, weights.__getitem__))
        for job, _ in overdue:
            self.observer.phase_changed(job)
        self.note_overlap([job for job, _ in overdue])
        return [Release(job=job, weight=phase.weight) for job, phase in overdue]

    def release_all(self, now: float) -> list[Release]:
        """Release all waiting phases: the policy that should have admitted them failed.

        So are those that it admitted before it failed, since nobody has told them yet.
        """
        untold = {job: phase.weight for job, phase in self._phases() if self.begins_turn(job)}
        waiting, beside = dict(self.waiting()), self._heaviest()
        weights = {job: beside(phase) for job, phase in waiting.items()}
        for job, phase in waiting.items():
            phase.release(now, weights[job])
            self.observer.phase_changed(job)
        self.note_overlap()
        return [
            Release(job=job, weight=weight, failed=True)
            for job, weight in (untold | weights).items()
        ]

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

    def weights(self, on: ResourceId | None = None) -> dict[JobId, float]:
        """Return the weights of the jobs that transfer, with or without a turn.

        On a resource, or on any.
        """
        return {
            job: state.phase.weight if on is None else state.phase.weight_on(on)
            for job, state in self.states.items()
            if state.phase is not None
            and not state.phase.is_waiting
            and (on is None or on in state.phase.resources)
        }

    def relative_weights(self) -> dict[JobId, float]:
        """Return the weights of the jobs that transfer, relative to the heaviest beside them.

        On the resource where that is most: jobs compete with those on the same resource alone.
        """
        heaviest_on: dict[ResourceId, float] = {}
        for _, phase in self._phases():
            for resource in phase.shared_resources():
                weight = phase.weight_on(resource)
                heaviest_on[resource] = max(weight, heaviest_on.get(resource, weight))
        return {
            job: max(phase.weight_on(r) / heaviest_on[r] for r in phase.shared_resources())
            for job, phase in self._phases()
            if phase.shared_resources()
        }

    def has_turn(self, job: JobId, on: ResourceId | None = None) -> bool:
        """Tell whether a job has its turn on a resource, or on any.

        Without one, it may transfer after a release.
        """
        phase = self.states[job].phase
        if phase is None or phase.admitted is None:
            return False
        return on is None or on in phase.turns

    def is_waiting(self, job: JobId) -> bool:
        """Tell whether a job waits for its turn."""
        phase = self.states[job].phase
        return phase is not None and phase.is_waiting

    def out_of_turn(self) -> dict[ResourceId, set[JobId]]:
        """Return the jobs that transfer by a turn on another of their resources, by resource."""
        jobs: dict[ResourceId, set[JobId]] = {}
        for job, phase in self._phases():
            for resource in phase.resources if not phase.is_waiting else ():
                if not phase.has_share_of(resource):
                    jobs.setdefault(resource, set()).add(job)
        return jobs

    def _phases(self) -> Iterator[tuple[JobId, Phase]]:
        for job in self._in_phase:
            if (phase := self.states[job].phase) is not None:
                yield job, phase

    def _heaviest(self) -> Callable[[Phase], float]:
        """Return the weight of phases that transfer without a turn from now on."""
        on: dict[ResourceId, list[Phase]] = {}
        for _, phase in self._phases():
            if not phase.is_waiting:
                for resource in phase.resources:
                    on.setdefault(resource, []).append(phase)
        weights = {resource: heaviest(phases) for resource, phases in on.items()}

        def beside(phase: Phase) -> float:
            return max((weights[r] for r in phase.resources if r in weights), default=1.0)

        return beside

    def moment(self) -> "Moment":
        """Return what many jobs are described with, until the next event."""
        return Moment(queues=self.manager.queue_index())

    def share(self, job: JobId, totals: dict[ResourceId, float] | None = None) -> float:
        """Return the part of its resources that a job is granted now, their mean.

        `totals`: the weights on resources, as far as they were summed at this moment.
        """
        totals = {} if totals is None else totals
        phase = self.states[job].phase
        if phase is None or phase.is_waiting:
            return 0.0
        if not phase.resources:
            return 1.0
        return fmean(self._share(phase, resource, totals) for resource in phase.resources)

    def _share(self, phase: Phase, resource: ResourceId, totals: dict[ResourceId, float]) -> float:
        if not phase.has_share_of(resource):
            return 0.0
        if resource not in totals:
            beside = (each for _, each in self._phases() if each.has_share_of(resource))
            totals[resource] = sum(each.weight_on(resource) for each in beside)
        return phase.weight_on(resource) / totals[resource]

    def expected_seconds(
        self,
        job: JobId,
        volume: float | None = None,
        resources: tuple[ResourceId, ...] = (FIRST_FILE_SYSTEM,),
    ) -> float | None:
        """Return how long a phase will be, alone; None: not known.

        By the `volume` that it announces, else like the job's earlier phases, else by the volume
        that its user or family says.
        """
        state = self.states[job]
        if volume is None and (mean := self.ledger.expected_io(job)) is not None:
            return mean
        volume = state.volume if volume is None else volume
        # One bandwidth for all, if the site declares it: equal volumes are then equally long.
        declared = self.ledger.site.bandwidth_on(resources)
        bandwidth = declared or state.bandwidth or self.fastest
        return volume / bandwidth if volume is not None and bandwidth else None

    def note_overlap(self, jobs: Iterable[JobId] | None = None) -> None:
        """Note which phases, of these jobs or of all, move data beside others now.

        Phases share file systems, also those that go direct, and some share I/O nodes, whatever
        turns are taken on. A phase that waits for its turn moves nothing, unless its job is only
        observed. One whose turn was taken since its job fell silent may still move data.
        """
        moving: dict[JobId, Phase] = {}
        for job in self.states if jobs is None else jobs:
            state = self.states.get(job)
            phase = None if state is None else state.phase
            if state is not None and phase is None and job in self._silent:
                moving |= {} if state.suspended is None else {job: state.suspended}
            elif phase is not None and phase.moves_since is not None:
                moving[job] = phase
            if job not in moving:  # all leave before any other comes
                self._overlap.leave(job)
        for job, phase in moving.items():
            self._overlap.enter(job, phase)

    def _interrupt(self, now: float, job: JobId) -> list[Action]:
        return [] if self.states[job].phase is None else self._end(now, job, 0.0)

    def _end(
        self, now: float, job: JobId, io: float, report: PhaseReport | None = None
    ) -> list[Action]:
        state = self.states[job]
        resources = (state.phase and state.phase.resources) or (DIRECT_PATH,)
        state.phase = None
        self._in_phase.discard(job)
        self.note_overlap([job])
        idle = 0.0 if report is None else max(report.idle, 0.0)
        if report is None:
            state.idle_since = None
        elif not report.small:  # a job that moves little computes all the while
            state.idle_since = now - idle
        self.observer.phase_ended(job, now - idle, report)
        if not self.manager.in_phase(job):
            return []
        actions: list[Action] = []
        failure: BaseException | None = None
        for resource in resources:
            event = PhaseEnded(time=now, job=job, resource=resource, io=io, idle=idle)
            # What the phase moved is said once, with its end.
            try:
                actions += self._handle(event, report if resource == resources[-1] else None)
            except BaseException as error:  # whatever a policy raises, it ends on all resources
                failure = failure or error
        if failure is not None:
            raise failure
        return actions

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
        self.note_overlap(
            {action.job: None for action in actions if isinstance(action, Admit | Hold)}
        )
        return actions

    def _apply(self, action: Action) -> None:
        """Update a job's phase by what was decided."""
        now = self.ledger.now
        match action:
            case Admit(job=job, resource=resource):
                phase = self._phase(job)
                more = resource not in phase.turns
                phase.has_turn_on(resource, action.weight)
                if phase.admitted is not None:  # it transfers already
                    phase.weight = phase.heaviest_turn()
                    if more:
                        self.observer.phase_changed(job)
                    return
                phase.admit(now, action.weight)
                self.turns += 1
                self.observer.phase_changed(job)
            case Hold(job=job, resource=resource):
                phase = self._phase(job)
                phase.turns.discard(resource)
                if phase.turns:
                    phase.weight = phase.heaviest_turn()
                else:
                    phase.hold(now)
                self.observer.phase_changed(job)

    def begins_turn(self, job: JobId) -> bool:
        """Tell whether the last event gave the job a turn, and not only a new weight."""
        phase = self.states[job].phase if job in self.states else None
        return phase is None or phase.admitted == self.ledger.now

    def _phase(self, job: JobId) -> Phase:
        phase = self.states[job].phase
        assert phase is not None
        return phase
