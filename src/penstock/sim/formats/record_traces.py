"""The phases of each job in a record, and everything that transferred.

A phase that yielded its turn and resumed is one phase; its pause counts as computing before it. A
phase that was cut off (its job or the controller ended meanwhile) has no length: its job counts up
to its beginning, and from its end on as another one.
"""

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from penstock.learn.phases import MEASURABLE
from penstock.model import (
    DIRECT_PATH,
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
    ResourceId,
)
from penstock.records import Entry
from penstock.sim.checks import SHORTEST
from penstock.sim.formats.record_io_nodes import IoNodesOfRecord
from penstock.sim.workload import Floats

TOO_FAST = 1.05
"""A phase faster than alone by more than this factor was measured badly."""
ROUNDING = 1 + 1e-9
NO_TRANSFER = -1
"""The place of a phase of unknown bytes in the list of transfers."""
UNKNOWN_COUNT = -1
"""The number of resources of a phase of which it is not known."""


@dataclass(slots=True, kw_only=True)
class Cuts:
    """What could not be converted exactly, in jobs or phases."""

    jobs_before: int = 0
    """Jobs that ran when the record began."""
    jobs_after: int = 0
    """Jobs that ran when the record ended."""
    jobs_idle: int = 0
    """Jobs left out because the record has no work of them."""
    jobs_cut: int = 0
    """Jobs left out because all their phases were cut off."""
    jobs_moved: int = 0
    """Jobs whose phases used several sets of resources; they count with the most used."""
    jobs_without_io: int = 0
    """Jobs of which the record has no I/O phase; they count as computing."""
    jobs_without_curve: int = 0
    """By I/O node: jobs whose curve is not known at the number that they had; their I/O takes as
    long on any number."""
    phases: int = 0
    """Phases left out because they are cut by the beginning or end of the record."""
    phases_direct: int = 0
    """Direct phases, not through an I/O node."""
    phases_unmeasured: int = 0
    """Phases left out because they were cut off: nobody measured them."""
    phases_too_fast: int = 0
    """Phases faster than the controller thought possible; they count with what they took."""
    phases_short: int = 0
    """Phases too short to measure: they count with what they took, and fit no bandwidth."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a job transferred, from `start` to `end`; bytes and seconds 0: not known.

    It shared its resources by `weight`; `held`: it lost its turn in between.
    """

    job: JobId
    start: float
    end: float
    bytes: float = 0.0
    seconds: float = 0.0
    weight: float = 1.0
    held: bool = False
    resources: tuple[ResourceId, ...] = (0,)


@dataclass(slots=True, kw_only=True)
class _Phase:
    """A phase in progress."""

    requested: float
    resources: tuple[ResourceId, ...]
    parts: set[ResourceId]
    expected: float | None
    count: int = UNKNOWN_COUNT
    longest: float = 0.0
    admitted: float | None = None
    weight: float = 1.0
    held: bool = False
    suspended: float | None = None
    """When it ended without a length: it was cut off, unless it resumes."""


@dataclass(slots=True)
class Trace:
    """One job: iteration i computed until request[i], and its phase ended at end[i]."""

    job: Job
    start: float
    carried: bool = False
    cut: bool = False
    phases: int = 0
    """Its complete phases: what it computes after the last one is no iteration."""
    io: "array[float]" = field(default_factory=lambda: array("d"))
    request: "array[float]" = field(default_factory=lambda: array("d"))
    end: "array[float]" = field(default_factory=lambda: array("d"))
    transfer: "array[int]" = field(default_factory=lambda: array("q"))
    """The place of each phase in the list of transfers."""
    count: "array[int]" = field(default_factory=lambda: array("q"))
    """The number of resources that each phase had."""
    places: Counter[tuple[ResourceId, ...]] = field(default_factory=Counter)
    phase: _Phase | None = None

    @property
    def last_end(self) -> float:
        """When its last phase ended, or it began."""
        return self.end[-1] if self.end else self.start

    @property
    def compute(self) -> Floats:
        """The gaps before the phases."""
        ends = np.concatenate(([self.start], np.array(self.end)))
        return np.array(self.request) - ends[:-1]

    @property
    def works(self) -> bool:
        """True if there is work to simulate, and not only what preceded a phase that was cut."""
        if self.cut and not any(self.io):
            return False
        work = float(self.compute.sum()) + sum(self.io) if self.end else 0.0
        return work > SHORTEST * len(self.end)

    def over(self, now: float) -> None:
        """The job or the record ends: the time since its last phase is computation."""
        if now > self.last_end:
            self.add(now, 0.0, now)

    def add(
        self,
        request: float,
        io: float,
        end: float,
        transfer: int = NO_TRANSFER,
        count: int = UNKNOWN_COUNT,
    ) -> None:
        """Add an iteration."""
        # The end of a phase may be dated back, but not before the job's own last event.
        self.request.append(max(request, self.last_end))
        self.io.append(io)
        self.end.append(max(end, self.request[-1]))
        self.transfer.append(transfer)
        self.count.append(count)


class Traces:
    """Collects each job's phases from the entries of a record.

    `enforced`: jobs waited for their turns; else every phase transferred from its beginning on.
    `io_nodes`: a phase was on the I/O nodes of its job, not on the resources that it names.
    """

    def __init__(
        self,
        began: float,
        running: Iterable[JobStarted],
        *,
        enforced: bool,
        io_nodes: IoNodesOfRecord | None = None,
    ) -> None:
        self.cuts = Cuts()
        self._io_nodes = io_nodes
        self.now = 0.0
        self._began, self._enforced = began, enforced
        self._open = {s.job.id: Trace(s.job, 0.0, carried=True) for s in running}
        self.cuts.jobs_before = len(self._open)
        self.all = list(self._open.values())
        self.transfers: list[Transfer] = []
        self.with_io: set[JobId] = set()
        """Jobs of which a phase was seen, even if only a part of it."""
        self.idle: array[float] = array("d")
        """How long after the end of each phase the controller knew of it."""
        self.events = 0
        self.unmatched = 0
        """Events that do not follow from those before: others are missing."""
        self._failed: set[JobId] = set()

    def take(self, entry: Entry) -> None:
        """Process a line of the record."""
        event = entry.event
        self.now = event.time - self._began
        self.events += 1
        self.unmatched += not self._follows(event)
        if entry.failed and isinstance(event, PhaseBegan | PhaseEnded):
            self._failed.add(event.job)
        if isinstance(event, PhaseBegan | PhaseEnded):
            self.with_io.add(event.job)
        match event:
            case JobStarted() if event.job.id not in self._open:
                self._start(event.job, self.now)
            case JobEnded() if event.job in self._open:
                self._close(self._open.pop(event.job))
            case PhaseBegan() if event.job in self._open:
                self._phase_began(event)
            case PhaseEnded() if event.job in self._open:
                self._phase_ended(self._open[event.job], event, entry)
        for action in entry.actions:
            self._act(action)
        if self._io_nodes is not None:
            self._io_nodes.take(entry)

    def end(self) -> None:
        """The record ends: close the jobs that still run."""
        self.cuts.jobs_after = len(self._open)
        for trace in self._open.values():
            self._close(trace)

    def _follows(self, event: Event) -> bool:
        """Tell whether an event can follow those before it, if none is missing."""
        match event:
            case JobStarted():
                return event.job.id not in self._open
            case JobEnded():
                return event.job in self._open
            case PhaseBegan() | PhaseEnded() if event.job not in self._open:
                return False
            case PhaseBegan():  # a phase whose policy raised an exception may have no end
                phase = self._open[event.job].phase
                return phase is None or phase.suspended is not None or event.job in self._failed
            case PhaseEnded():
                trace = self._open[event.job]
                began = trace.phase is not None and trace.phase.suspended is None
                return began or (trace.carried and not trace.end) or event.job in self._failed
        return True

    def _start(self, job: Job, now: float) -> None:
        self._open[job.id] = Trace(job, now)
        self.all.append(self._open[job.id])

    def _phase_began(self, event: PhaseBegan) -> None:
        trace = self._open[event.job]
        earlier = trace.phase
        if event.resumes and earlier is not None and earlier.suspended is not None:
            earlier.requested += self.now - earlier.suspended
            earlier.parts = set(event.resources) or {DIRECT_PATH}
            earlier.suspended, earlier.held = None, True
            if self._io_nodes is None:
                self._use_more(trace, earlier, event.resources)
            return
        if earlier is not None:  # a phase whose policy raised an exception may have no end
            trace = self._cut(trace, goes_on=True)
        trace.phase = _Phase(
            requested=self.now,
            resources=event.resources,
            parts=set(event.resources) or {DIRECT_PATH},
            expected=event.io,
        )
        self.cuts.phases_direct += not event.resources
        places: tuple[ResourceId, ...] | None = event.resources
        if self._io_nodes is not None:
            places = self._io_nodes.of(trace.job, event.resources)
        if places is not None:
            trace.phase.count = len(places)
        if event.resources and places:
            trace.places[places] += 1

    def _use_more(self, trace: Trace, phase: _Phase, resources: tuple[ResourceId, ...]) -> None:
        """A phase that goes on may use other file systems besides."""
        every = tuple(sorted({*phase.resources, *resources}))
        if every != phase.resources and phase.resources:
            trace.places[phase.resources] -= 1
            trace.places[every] += 1
            trace.places = +trace.places
            phase.resources, phase.count = every, len(every)

    def _phase_ended(self, trace: Trace, event: PhaseEnded, entry: Entry) -> None:
        phase, end = trace.phase, self.now - event.idle
        if phase is None:
            if trace.carried and not trace.end:
                trace.start = max(0.0, end)
                self.cuts.phases += 1
                # It began before the record: on which resources, beside this one, is not known.
                on = (event.resource,)
                self.transfers.append(Transfer(trace.job.id, 0.0, trace.start, resources=on))
            return
        phase.parts.discard(event.resource)
        phase.longest = max(phase.longest, event.io)
        if phase.parts:
            return
        end = max(end, phase.requested)
        measured = entry.bytes is not None or phase.longest > 0 or phase.expected == 0
        if measured or end == phase.requested or event.resource == DIRECT_PATH:
            trace.phase = None
            if event.resource != DIRECT_PATH:
                self._complete(trace, phase, end, entry)
        else:
            phase.suspended = end

    def _complete(self, trace: Trace, phase: _Phase, end: float, entry: Entry) -> None:
        since = phase.admitted if self._enforced and phase.admitted is not None else phase.requested
        seconds = end - since
        if entry.seconds is not None and entry.seconds > 0:
            seconds = entry.seconds
            if not phase.held:  # the controller hears of the beginning of a phase a little late
                since = max(end - seconds, trace.last_end)
                phase.requested = min(phase.requested, since)
        self.idle.append(self.now - end)
        took = end - phase.requested
        place = NO_TRANSFER
        # Without the job's own seconds it is not a sample that measured it.
        sampled = bool(entry.bytes) and entry.seconds is not None
        short = sampled and min(seconds, took) < MEASURABLE
        self.cuts.phases_short += short
        moved = 0 if short else entry.bytes or 0
        if end > since:
            place = len(self.transfers) if moved else NO_TRANSFER
            self.transfers.append(
                Transfer(
                    trace.job.id,
                    since,
                    end,
                    bytes=float(moved),
                    seconds=min(seconds, took),
                    weight=phase.weight if self._enforced else 1.0,
                    held=phase.held,
                    resources=phase.resources,
                )
            )
        unknown = place == NO_TRANSFER and not short
        self.cuts.phases_too_fast += unknown and phase.longest > took * TOO_FAST
        # Rounding aside, no phase takes longer alone than it did.
        io = took if short or phase.longest > took * ROUNDING else phase.longest
        trace.phases += 1
        trace.add(phase.requested, io, end, place, phase.count)

    def _act(self, action: Action) -> None:
        if not isinstance(action, Admit | Hold) or action.job not in self._open:
            return
        phase = self._open[action.job].phase
        if phase is None:
            return
        if isinstance(action, Hold):
            phase.held = phase.held or phase.admitted is not None
        else:
            phase.weight = action.weight
            phase.admitted = self.now if phase.admitted is None else phase.admitted

    def _close(self, trace: Trace) -> None:
        """A job ends, or the record does."""
        if trace.phase is not None and trace.phase.suspended is not None:
            trace = self._cut(trace)
        elif trace.phase is not None:
            self.cuts.phases += 1
            self._transferred(trace, trace.phase, self.now)
        trace.over(self.now if trace.phase is None else trace.phase.requested)

    def _cut(self, trace: Trace, *, goes_on: bool = False) -> Trace:
        """Leave out the phase that was cut off; return what its job did afterwards.

        `goes_on`: its next phase begins now.
        """
        phase = trace.phase
        assert phase is not None
        end = self.now if phase.suspended is None else phase.suspended
        self.cuts.phases_unmeasured += 1
        self._transferred(trace, phase, end)
        trace.over(phase.requested)
        trace.phase, trace.cut = None, True
        rest = Trace(trace.job, end)
        if trace.job.id in self._open:
            self._open[trace.job.id] = rest
        if goes_on or self.now > end:
            self.all.append(rest)
        return rest

    def _transferred(self, trace: Trace, phase: _Phase, end: float) -> None:
        """Note that a phase of unknown length was in the way of others, once it had its turn."""
        since, weight = phase.requested, 1.0
        if self._enforced:
            if phase.admitted is None:  # it waited all the time
                return
            since, weight = phase.admitted, phase.weight
        if end > since:
            self.transfers.append(
                Transfer(
                    trace.job.id, since, end, weight=weight, held=True, resources=phase.resources
                )
            )
