"""Lanes for `what-if --lanes`: what each job did when, recorded and simulated.

A lane is computing except in its stretches. A stretch is [job, kind, start, end, share]: the job's
place in the list of jobs; "io" or "wait"; seconds of the record; the mean share of
what serves it: the file system, or the job's I/O nodes that serve it at the time.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from penstock.model import Admit, Event, Hold, JobEnded, JobStarted, PhaseBegan, PhaseEnded
from penstock.records import ENFORCE, Record
from penstock.sim.formats.fitted_bandwidth import served
from penstock.sim.formats.from_record import Recording
from penstock.sim.run import Run
from penstock.sim.workload import Floats, Workload

MOST_JOBS = 200
"""Number of jobs with a lane: those with the most I/O."""
MOST_STRETCHES = 6_000
"""Number of stretches of all lanes under one policy: the first ones."""
Stretch = tuple[int, str, float, float, float]
Intervals = list[tuple[int, float, float, float]]
"""Job, start, end and weight, or share."""


def lanes(record: Record, recording: Recording, runs: Mapping[str, Run]) -> dict[str, Any]:
    """Return the lanes of what was recorded, and of each policy's run."""
    workload, header = recording.workload, record.header
    jobs = _largest_jobs(workload)
    place = {j: k for k, j in enumerate(jobs)}
    waits, transfers = _recorded(record, workload)
    ends = [recording.run.makespan, *(run.makespan for run in runs.values())]
    return {
        "begin": header.epoch + header.began,
        "window": [0.0, max(ends)],
        "jobs": [
            {
                "id": workload.id(j),
                "nodes": int(workload.nodes[j]),
                "began": float(workload.release[j]),
            }
            for j in jobs
        ],
        "left_out": len(workload) - len(jobs),
        "recorded": _lane_data(waits, _shared(transfers), recording.run.finish, place),
        "simulated": {
            policy: _lane_data(*_simulated(run, place), run.finish, place)
            for policy, run in runs.items()
        },
    }


def _largest_jobs(workload: Workload) -> list[int]:
    """Return the jobs with the most I/O, in the order in which they began."""
    most = np.argsort(-workload.total(workload.io), kind="stable")[:MOST_JOBS].tolist()
    return sorted(most, key=lambda j: (float(workload.release[j]), j))


def _lane_data(
    waits: Intervals, transfers: Intervals, finish: Floats, place: Mapping[int, int]
) -> dict[str, Any]:
    kinds = (("wait", waits), ("io", transfers))
    stretches: list[Stretch] = [
        (place[j], kind, round(start, 4), round(end, 4), round(min(share, 1.0), 4))
        for kind, intervals in kinds
        for j, start, end, share in intervals
        if j in place and end > start
    ]
    stretches.sort(key=lambda stretch: stretch[2])
    rest = stretches[MOST_STRETCHES:]
    return {
        "stretches": stretches[:MOST_STRETCHES],
        "finish": [float(finish[j]) for j in place],
        "until": rest[0][2] if rest else None,
    }


def _simulated(run: Run, place: Mapping[int, int]) -> tuple[Intervals, Intervals]:
    """Return when jobs of a run waited, and when they transferred at which share."""
    line, workload = run.timeline, run.workload
    assert line is not None
    waits: Intervals = []
    transfers: Intervals = []
    for j in place:
        rows = np.flatnonzero(line.job == j)
        columns = line.start[rows], line.end[rows], line.share[rows]
        one = len(np.unique(line.resource[rows])) <= 1
        starts, ends, shares = map(np.ndarray.tolist, columns if one else _together(*columns))
        transfers += [(j, *row) for row in zip(starts, ends, shares, strict=True)]
        part = slice(*workload.offsets[j : j + 2])
        phases = zip(run.request[part].tolist(), run.end[part].tolist(), strict=True)
        waits += ((j, a, b, 0.0) for a, b in _gaps(phases, starts, ends))
    return waits, transfers


def _together(starts: Floats, ends: Floats, shares: Floats) -> tuple[Floats, Floats, Floats]:
    """Return when any of a job's resources serves it, with the mean share of those that do."""
    bounds = np.unique(np.concatenate((starts, ends)))
    begin, end = np.searchsorted(bounds, starts), np.searchsorted(bounds, ends)
    serving, total = np.zeros(len(bounds), dtype=int), np.zeros(len(bounds))
    np.add.at(serving, begin, 1)
    np.subtract.at(serving, end, 1)
    np.add.at(total, begin, shares)
    np.subtract.at(total, end, shares)
    serving, total = serving.cumsum()[:-1], total.cumsum()[:-1]
    served_then = np.flatnonzero(serving)
    return (
        bounds[served_then],
        bounds[served_then + 1],
        total[served_then] / serving[served_then],
    )


def _gaps(
    phases: Iterator[tuple[float, float]], starts: Sequence[float], ends: Sequence[float]
) -> Iterator[tuple[float, float]]:
    """Yield the parts of phases in which nothing was transferred."""
    for begin, end in phases:
        at = begin
        for k in range(bisect_left(starts, begin), len(starts)):
            if starts[k] >= end:
                break
            yield at, starts[k]
            at = ends[k]
        yield at, end


def _recorded(record: Record, workload: Workload) -> tuple[Intervals, Intervals]:
    """Return when jobs of a record waited, and transferred with which weight."""
    header = record.header
    enforced = header.mode in {None, ENFORCE}
    walk = _Walk(header.began, workload, None if enforced else 1.0)
    for start in header.running:
        walk.carried(start)
    for entry in record:
        walk.take(entry.event)
        for action in entry.actions if enforced else ():
            if isinstance(action, Admit):
                walk.turn(action.job, action.weight)
            elif isinstance(action, Hold):
                walk.turn(action.job, None)
    walk.end()
    return walk.waits, walk.transfers


class _Walk:
    """Goes through a record; knows which jobs are in a phase since when, with which weight.

    `weight` is what a phase begins with; None: it waits until it is admitted.
    """

    def __init__(self, began: float, workload: Workload, weight: float | None) -> None:
        self._weight = weight
        self.waits: Intervals = []
        self.transfers: Intervals = []
        self._began, self._now = began, 0.0
        ids = [workload.id(j).partition("#")[0] for j in range(len(workload))]
        self._started = {
            (id, start): j
            for j, (id, start) in enumerate(zip(ids, workload.release.tolist(), strict=True))
        }
        self._first = {id: j for j, id in reversed(list(enumerate(ids)))}
        self._open: dict[str, int] = {}  # jobs that run, by their place in the workload
        self._phases: dict[str, tuple[float, float | None]] = {}  # since when; None: it waits

    def carried(self, started: JobStarted) -> None:
        """A job ran when the record began."""
        if started.job.id in self._first:
            self._open[started.job.id] = self._first[started.job.id]

    def take(self, event: Event) -> None:
        self._now = max(event.time - self._began, 0.0)
        match event:
            case JobStarted():
                j = self._started.get((event.job.id, self._now))
                if j is not None:
                    self._open.setdefault(event.job.id, j)
            case PhaseBegan():
                self._close(event.job, self._now)
                if event.resources and event.job in self._open:
                    self._phases[event.job] = (self._now, self._weight)
            case PhaseEnded():
                end = self._now - event.idle
                self._close(event.job, end)
                # After a phase that was cut off the job goes on as another one.
                if event.job in self._open and (event.job, end) in self._started:
                    self._open[event.job] = self._started[event.job, end]
            case JobEnded():
                self._close(event.job, self._now)
                self._open.pop(event.job, None)

    def turn(self, job: str, weight: float | None) -> None:
        """A job transfers with a weight from now on, or waits."""
        if job in self._phases and self._phases[job][1] != weight:
            self._close(job, self._now)
            self._phases[job] = (self._now, weight)

    def end(self) -> None:
        """The record is over."""
        for job in list(self._phases):
            self._close(job, self._now)

    def _close(self, job: str, end: float) -> None:
        since, weight = self._phases.pop(job, (end, None))
        if end > since and job in self._open:
            intervals = self.waits if weight is None else self.transfers
            intervals.append((self._open[job], since, end, weight or 0.0))


def _shared(transfers: Intervals) -> Intervals:
    """Return the mean share of each transfer: its weight over the sum of weights, over time."""
    if not transfers:
        return []
    columns = np.array([(start, end, weight) for _, start, end, weight in transfers])
    start, end, weight = columns.T
    shares = served(start, end, weight) / (end - start)
    return [
        (j, a, b, share) for (j, a, b, _), share in zip(transfers, shares.tolist(), strict=True)
    ]
