"""The record of a live controller as a workload, to simulate its jobs under any policy.

A job computes in the gaps between its phases; its I/O is the time that each phase would have taken
alone, which the controller derived from the bytes and the job's uncontended bandwidth. Waiting for
a turn and sharing the file system are effects of the policy, and are left out. A direct phase (not
through an I/O node) took part in no sharing: it counts as a gap.

Jobs may run when a record begins or ends. A job that ran before counts from the beginning of the
record, or from the end of the phase that it was in; a job that continues counts up to the end of
the record, or to the beginning of the phase that it is in.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import InputError
from penstock.model import (
    DIRECT_PATH,
    Event,
    Job,
    JobEnded,
    JobStarted,
    PhaseBegan,
    PhaseEnded,
    ResourceId,
    Site,
)
from penstock.records import Record
from penstock.sim.checks import SHORTEST
from penstock.sim.run import Run
from penstock.sim.workload import Floats, Workload

TOO_FAST = 1.05
"""A phase faster than alone by more than this factor was measured badly."""


@dataclass(slots=True, kw_only=True)
class Cuts:
    """What could not be converted exactly, in jobs or phases."""

    jobs_before: int = 0
    """Jobs that ran when the record began."""
    jobs_after: int = 0
    """Jobs that ran when the record ended."""
    jobs_idle: int = 0
    """Jobs left out because the record has no work of them."""
    jobs_moved: int = 0
    """Jobs whose phases used several sets of resources; they count with the most used."""
    phases: int = 0
    """Phases left out because they are cut by the beginning or end of the record."""
    phases_direct: int = 0
    """Direct phases, not through an I/O node."""
    phases_unmeasured: int = 0
    """Phases of unknown isolated length; their I/O counts as zero."""
    phases_too_fast: int = 0
    """Phases faster than they should have been alone: the bandwidth is uncertain."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recording:
    """A record as a workload, and as the run that actually took place."""

    workload: Workload
    run: Run
    cuts: Cuts
    notes: Sequence[str]


@dataclass(slots=True)
class _Trace:
    """One job: iteration i computed until request[i], and its phase ended at end[i]."""

    job: Job
    start: float
    carried: bool = False
    io: "array[float]" = field(default_factory=lambda: array("d"))
    request: "array[float]" = field(default_factory=lambda: array("d"))
    end: "array[float]" = field(default_factory=lambda: array("d"))
    places: Counter[tuple[ResourceId, ...]] = field(default_factory=Counter)
    requested: float | None = None
    parts: set[ResourceId] = field(default_factory=set)
    longest: float = 0.0

    @property
    def last_end(self) -> float:
        return self.end[-1] if self.end else self.start

    @property
    def compute(self) -> Floats:
        """The gaps before the phases."""
        ends = np.concatenate(([self.start], np.array(self.end)))
        return np.array(self.request) - ends[:-1]

    @property
    def works(self) -> bool:
        """True if there is work to simulate."""
        work = float(self.compute.sum()) + sum(self.io) if self.end else 0.0
        return work > SHORTEST * len(self.end)

    def began(self, event: PhaseBegan, now: float) -> None:
        self.requested, self.longest = now, 0.0
        self.parts = set(event.resources) or {DIRECT_PATH}
        if event.resources:
            self.places[event.resources] += 1

    def ended(self, event: PhaseEnded, now: float) -> bool:
        """Process the end of a part; return True if it ends the phase."""
        self.parts.discard(event.resource)
        self.longest = max(self.longest, event.io)
        if self.requested is None or self.parts:
            return False
        if event.resource != DIRECT_PATH:
            self._add(self.requested, self.longest, max(self.requested, now - event.idle))
        self.requested = None
        return True

    def over(self, now: float) -> None:
        """The job or the record ends: the time since its last phase is computation."""
        if now > self.last_end:
            self._add(now, 0.0, now)

    def _add(self, request: float, io: float, end: float) -> None:
        # The end of a phase may be dated back, but not before the job's own last event.
        self.request.append(max(request, self.last_end))
        self.io.append(io)
        self.end.append(max(end, self.request[-1]))


class _Traces:
    """Collects each job's phases from the events of a record."""

    def __init__(self, began: float, running: Iterable[JobStarted]) -> None:
        self.cuts = Cuts()
        self.now = 0.0
        self._began = began
        self._open = {s.job.id: _Trace(s.job, 0.0, carried=True) for s in running}
        self.cuts.jobs_before = len(self._open)
        self.all = list(self._open.values())

    def take(self, event: Event) -> None:
        self.now = event.time - self._began
        match event:
            case JobStarted() if event.job.id not in self._open:
                self._open[event.job.id] = _Trace(event.job, self.now)
                self.all.append(self._open[event.job.id])
            case JobEnded() if event.job in self._open:
                self._close(self._open.pop(event.job))
            case PhaseBegan() if event.job in self._open:
                # A phase whose policy raised an exception may have no end in the record.
                self.cuts.phases += self._open[event.job].requested is not None
                self._open[event.job].began(event, self.now)
                self.cuts.phases_direct += not event.resources
            case PhaseEnded() if event.job in self._open:
                self._phase_ended(self._open[event.job], event)

    def end(self) -> None:
        """The record ends: close the jobs that still run."""
        self.cuts.jobs_after = len(self._open)
        for trace in self._open.values():
            self._close(trace)

    def _phase_ended(self, trace: _Trace, event: PhaseEnded) -> None:
        if trace.requested is None and trace.carried and not trace.end:
            trace.start = max(0.0, self.now - event.idle)
            self.cuts.phases += 1
        elif trace.ended(event, self.now) and event.resource != DIRECT_PATH:
            took = trace.end[-1] - trace.request[-1]
            self.cuts.phases_unmeasured += trace.io[-1] == 0 < took
            self.cuts.phases_too_fast += trace.io[-1] > took * TOO_FAST

    def _close(self, trace: _Trace) -> None:
        if trace.requested is not None:
            self.cuts.phases += 1
        trace.over(self.now if trace.requested is None else trace.requested)


def load(record: Record, site: Site | None = None) -> Recording:
    """Convert a record; `site` replaces the one that it was made on."""
    name = record.paths[0]
    if record.lost:
        raise InputError(
            f"{name}: {record.lost} events between the parts could not be written then; "
            "give the parts on one side of the gap"
        )
    traces = _Traces(record.header.began, record.header.running)
    for entry in record:
        traces.take(entry.event)
    traces.end()
    worked = [trace for trace in traces.all if trace.works]
    traces.cuts.jobs_idle = len(traces.all) - len(worked)
    traces.cuts.jobs_moved = sum(len(trace.places) > 1 for trace in worked)
    if not worked:
        raise InputError(f"{name}: no job in it did any work; take a record of a longer time")
    # In the order of submission, which breaks ties; the sort is stable.
    worked.sort(key=lambda trace: trace.job.serial)
    try:
        workload = _workload(worked)
    except OverflowError as error:
        raise InputError(f"{name}: a job has an impossible number of nodes or resources") from error
    run = Run(
        workload=workload,
        site=site or record.header.site,
        request=_joined(trace.request for trace in worked),
        end=_joined(trace.end for trace in worked),
        start=workload.release,
        phase_ends=2 * workload.iterations,
    )
    return Recording(workload=workload, run=run, cuts=traces.cuts, notes=tuple(record.notes))


def read(path: Path, site: Site) -> Workload:
    """Return the workload of one part of a record; its numbers are not checked."""
    return load(Record(path), site).workload


def _workload(traces: Sequence[_Trace]) -> Workload:
    places = [next(iter(trace.places.most_common(1)), ((0,), 0))[0] for trace in traces]
    jobs = [trace.job for trace in traces]
    return Workload(
        compute=np.concatenate([trace.compute for trace in traces]),
        # A record has the lengths of phases at a job's own bandwidth.
        io=np.concatenate([np.array(trace.io) * trace.job.max_share for trace in traces]),
        offsets=np.cumsum([0, *(len(trace.end) for trace in traces)]),
        release=[trace.start for trace in traces],
        ids=_names(jobs),
        nodes=[job.nodes for job in jobs],
        max_share=[job.max_share for job in jobs],
        resource_offsets=np.cumsum([0, *map(len, places)]),
        resources=[resource for place in places for resource in place],
        curves=[job.curve for job in jobs] if any(job.curve for job in jobs) else None,
        details=[_details(job) for job in jobs],
    )


def _joined(columns: Iterable["array[float]"]) -> Floats:
    return np.concatenate([np.array(column) for column in columns])


def _names(jobs: Sequence[Job]) -> list[str]:
    """Return the jobs' names; a repeated name gets a number."""
    counts: Counter[str] = Counter()
    names = []
    for job in jobs:
        counts[job.id] += 1
        names.append(job.id if counts[job.id] == 1 else f"{job.id}#{counts[job.id]}")
    return names


def _details(job: Job) -> dict[str, Any]:
    details = {
        "user": job.user,
        "executable": job.executable,
        "processes": job.processes,
        "hints": dict(job.hints),
    }
    return {name: value for name, value in details.items() if value}
