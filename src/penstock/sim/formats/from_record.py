"""The record of a live controller as a workload, to simulate its jobs under any policy.

A job computes in the gaps between its phases; its I/O is the time that each phase would have taken
alone (`fitted_bandwidth`; where a record has no bytes, what the controller derived; where it was
too short to measure, what it took). Waiting for a turn and sharing the file system are effects of
the policy, and are left out. A direct phase (not through an I/O node) took part in no sharing: it
counts as a gap. A phase that yielded its turn and resumed is one phase; its pause counts as
computing before it.

Jobs may run when a record begins or ends. A job that ran before counts from the beginning of the
record, or from the end of the phase that it was in; a job that continues counts up to the end of
the record, or to the beginning of the phase that it is in. A phase that was cut off (its job or the
controller ended meanwhile) has no length: the job counts up to its beginning, and from its end on
as another one; a job without any complete phase besides is left out.

A site with several file systems, and turns on them, is simulated with these as its resources: a
job's are the ones that its phases used most often. A phase on several at once takes as long on each
of them.

By I/O node, to simulate other allocations: a job's resources are the I/O nodes that it had most
often. A phase beside others takes its bytes over the bandwidth that the job's curve has at the
number that it had; one at another number is converted by the curve. A job whose curve does not have
these numbers, or no other, counts without a curve, but policies see it (`known`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import InputError
from penstock.model import Curve, Job, JobId, NodeDown, NodeUp, ResourceId, Site
from penstock.records import ENFORCE, Header, Record
from penstock.sim.formats.fitted_bandwidth import Bandwidth, Transfers, fit
from penstock.sim.formats.record_io_nodes import IoNodesOfRecord
from penstock.sim.formats.record_traces import NO_TRANSFER, Cuts, Trace, Traces
from penstock.sim.run import Run
from penstock.sim.workload import Floats, Workload
from penstock.units import show_count

NEGLIGIBLE = 0.001
"""The part of a record's events that may be missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """What is missing in the middle of a record."""

    events: int | None
    """Missing events, by their numbers; None: the record's events have none."""
    unmatched: int
    """Recorded events that do not follow from those before: a phase that ends without having begun,
    for example."""
    of: int = field(repr=False)
    """Events of the record, with the missing ones."""
    where: str = field(default="", repr=False)
    """The first gap."""

    @classmethod
    def of_record(cls, record: Record, traces: Traces) -> "Missing":
        """Return what is missing in a record that was read to its end."""
        if not record.header.numbered:
            return cls(events=None, unmatched=traces.unmatched, of=traces.events)
        events = sum(gap.events for gap in record.gaps)
        return cls(
            events=events,
            # No number is missing: whatever does not follow was recorded as it happened.
            unmatched=traces.unmatched if events else 0,
            of=traces.events + events,
            where=record.gaps[0].where if events else "",
        )

    @property
    def matters(self) -> bool:
        """Whether what is missing can change a figure."""
        return (self.events or 0) + self.unmatched > NEGLIGIBLE * self.of

    def __str__(self) -> str:
        """What is missing, in words; empty: nothing."""
        if not self.events and not self.unmatched:
            return ""
        verb = "does" if self.unmatched == 1 else "do"
        apart = f"{show_count(self.unmatched, 'event')} {verb} not follow from those before"
        if self.events is None:
            text = f"lines are missing in the record ({apart})"
        else:
            verb = "is" if self.events == 1 else "are"
            text = f"{self.events:,} of {show_count(self.of, 'event')} {verb} missing"
            text += f" (first before {self.where}{f'; {apart}' if self.unmatched else ''})"
        return text if self.matters else f"{text}: less than {NEGLIGIBLE:.1%}, which is negligible"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recording:
    """A record as a workload, and as the run that actually took place."""

    workload: Workload
    run: Run
    cuts: Cuts
    bandwidth: Bandwidth
    iterations: int
    """Iterations that end with an I/O phase."""
    noticed: float
    """Mean seconds after which the controller knew that a phase had ended."""
    missing: Missing
    notes: Sequence[str]
    changes: Sequence[NodeUp | NodeDown] = ()
    """By I/O node: when which one came or went."""
    pinned: Mapping[JobId, tuple[ResourceId, ...]] = field(default_factory=dict)
    """By I/O node: those that jobs of the workload, or people, asked for."""
    known: Mapping[JobId, Job] = field(default_factory=dict)
    """By I/O node: the jobs of the workload as the controller knew them when they began."""


def load(record: Record, site: Site | None = None, *, by_io_node: bool = False) -> Recording:
    """Convert a record; `site` replaces the one that it was made on."""
    name = record.paths[0]
    if record.lost:
        raise InputError(
            f"{name}: {record.lost} events between the parts could not be written then; "
            "give the parts on one side of the gap"
        )
    header = record.header
    io_nodes = IoNodesOfRecord(header) if by_io_node else None
    traces = Traces(
        header.began, header.running, enforced=header.mode == ENFORCE, io_nodes=io_nodes
    )
    for entry in record:
        traces.take(entry)
    traces.end()
    worked = [trace for trace in traces.all if trace.works]
    traces.cuts.jobs_cut = sum(trace.cut and not trace.works for trace in traces.all)
    traces.cuts.jobs_idle = len(traces.all) - len(worked) - traces.cuts.jobs_cut
    traces.cuts.jobs_moved = sum(len(trace.places) > 1 for trace in worked)
    silent = {trace.job.id for trace in worked} - traces.with_io
    traces.cuts.jobs_without_io = len(silent)
    if not worked:
        raise InputError(f"{name}: no job in it did any work; take a record of a longer time")
    # In the order of submission, which breaks ties; the sort is stable.
    worked.sort(key=lambda trace: trace.job.serial)
    bandwidth = _fit(traces, worked, header, by_curve=by_io_node)
    known = [trace.job for trace in worked]
    if by_io_node:
        for trace in worked:
            _convert(trace)
        traces.cuts.jobs_without_curve = sum(
            trace.job.curve is None and trace.job.id not in silent for trace in worked
        )
    try:
        workload = _workload(worked, with_hosts=by_io_node)
    except OverflowError as error:
        raise InputError(f"{name}: a job has an impossible number of nodes or resources") from error
    run = Run(
        workload=workload,
        site=site or (header.site if by_io_node else header.turn_site),
        request=_joined(trace.request for trace in worked),
        end=_joined(trace.end for trace in worked),
        start=workload.release,
        phase_ends=2 * workload.iterations,
    )
    return Recording(
        workload=workload,
        run=run,
        cuts=traces.cuts,
        bandwidth=bandwidth,
        iterations=sum(trace.phases for trace in worked),
        noticed=sum(traces.idle) / len(traces.idle) if traces.idle else 0.0,
        missing=Missing.of_record(record, traces),
        notes=tuple(record.notes),
        changes=() if io_nodes is None else io_nodes.changes,
        pinned={} if io_nodes is None else _pinned(workload, worked, io_nodes),
        known={workload.id(j): job for j, job in enumerate(known)} if by_io_node else {},
    )


def _pinned(
    workload: Workload, worked: Sequence[Trace], io_nodes: IoNodesOfRecord
) -> dict[JobId, tuple[ResourceId, ...]]:
    pinned = io_nodes.pinned
    return {
        workload.id(j): pinned[trace.job.id]
        for j, trace in enumerate(worked)
        if trace.job.id in pinned
    }


def read(path: Path, site: Site) -> Workload:
    """Return the workload of one part of a record; its numbers are not checked."""
    recording = load(Record(path), site)
    if recording.missing.matters:
        raise InputError(f"{recording.missing}; give a record without a gap")
    return recording.workload


def _fit(traces: Traces, worked: Sequence[Trace], header: Header, *, by_curve: bool) -> Bandwidth:
    """Fit the bandwidth, and set the isolated lengths of phases whose bytes are known.

    A job's max_share stays as policies knew it: with another one they would decide otherwise.
    `by_curve`: a phase beside others has the bandwidth of its job's curve, where that is known.
    """
    transfers = Transfers.of(traces.transfers)
    several = len(header.site.file_systems) > 1 and header.scope == "file-system"
    # What a site declares is the bandwidth of its file system.
    declared = None
    if header.scope == "file-system" and not several:
        declared = header.site.bandwidth_on((0,))
    bandwidth, own = fit(transfers, declared)
    if bandwidth.fitted is None:
        return bandwidth
    if several:
        _set_lengths_by_file_system(transfers, worked, bandwidth.fitted)
        return bandwidth
    alone, counts = transfers.alone, transfers.counts
    for trace in worked:
        curve = trace.job.curve if by_curve else None
        for i, place in enumerate(trace.transfer):
            if place != NO_TRANSFER:
                took, count = float(transfers.seconds[place]), trace.count[i]
                whole = bandwidth.fitted * counts[place] * trace.job.max_share
                most = own.get(trace.job.id, whole)
                if curve is not None and count in curve:
                    most = curve.bandwidth(count)
                trace.io[i] = took if alone[place] else min(transfers.bytes[place] / most, took)
    return bandwidth


def _set_lengths_by_file_system(
    transfers: Transfers, worked: Sequence[Trace], usual: float
) -> None:
    """Set the isolated lengths of phases by the bandwidth of the file systems that they used.

    `usual`: of one that the record shows no phase of its own of.
    """
    used = sorted({resource for each in transfers.resources for resource in each})
    fits = {resource: fit(transfers, None, on=resource) for resource in used}
    alone = transfers.alone
    for trace in worked:
        for i, place in enumerate(trace.transfer):
            if place == NO_TRANSFER:
                continue
            took, on = float(transfers.seconds[place]), transfers.resources[place]
            whole = sum(fits[each][0].fitted or usual for each in on) * trace.job.max_share
            most = fits[on[0]][1].get(trace.job.id, whole) if len(on) == 1 else whole
            trace.io[i] = took if alone[place] else min(transfers.bytes[place] / most, took)


def _place(trace: Trace) -> tuple[ResourceId, ...]:
    """Return the resources that a job had most often."""
    return next(iter(trace.places.most_common(1)), ((0,), 0))[0]


def _convert(trace: Trace) -> None:
    """Convert all phases of a job to the number of resources that it had most often."""
    curve, usual = trace.job.curve, len(_place(trace))
    if curve is None:
        return
    numbers = {usual, *(n for n, io in zip(trace.count, trace.io, strict=True) if io)}
    if len(curve.counts) == 1 or not all(number in curve for number in numbers):
        trace.job = replace(trace.job, curve=None)
        return
    for i, io in enumerate(trace.io):
        if io:
            trace.io[i] = io * _ratio(curve, trace.count[i], usual)


def _ratio(curve: Curve, count: int, usual: int) -> float:
    # An exact one, so that the phases of a job that is never moved keep their lengths.
    return 1.0 if count == usual else curve.bandwidth(count) / curve.bandwidth(usual)


def _workload(traces: Sequence[Trace], *, with_hosts: bool) -> Workload:
    places = [_place(trace) for trace in traces]
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
        # No format of workloads has hosts: they matter to who reaches which I/O node.
        details=[_details(job) | ({"host": job.host} if with_hosts else {}) for job in jobs],
    )


def _joined(columns: Iterable[Sequence[float]]) -> Floats:
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
