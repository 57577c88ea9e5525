"""What a run was worth, to administrators and to users: the metrics of paper io-sets, Section V-D.

All are taken in a window [begin, end]. Of a phase that the window cuts, the part inside counts: of
a compute phase the seconds, of an I/O phase the isolated work done inside, of an iteration the part
of its work. A record of a live site does not know what a phase had moved when the window cut it:
there the work counts in proportion to the phase's elapsed time, its wait included. For IO-slowdown
it does so everywhere: a phase waits first and transfers then, and by the work alone a window that
ends between the two would have a wait of any length for next to no I/O. Isolated is as if the job
ran alone: a job that can use a part of the bandwidth only (`max_share`) is compared with itself at
that part.

The paper's window lies inside every job's life. Where one does not, each job counts with the part
of the window in which it is there, which is the same thing in the paper's case.
"""

import math
from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError
from penstock.sim.run import Run
from penstock.sim.workload import Floats

JOBS_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobMetrics:
    """A job's part of the window, all in seconds but `iterations`; one entry per job."""

    present: Floats
    """It was released and had not ended."""
    running: Floats
    """It had started and not ended."""
    compute: Floats
    """It computed: e_cpu."""
    io: Floats
    """The isolated length of the I/O it got done: e_io."""
    iterations: Floats
    """Iterations, in fractions."""
    in_io: Floats
    """It waited for I/O or did it."""
    isolated_io: Floats
    """The isolated length of its I/O phases, of one that is cut in proportion to its time inside:
    e_phase."""
    io_slowdown: Floats
    """in_io over isolated_io; NaN for a job without I/O in the window."""
    stretch: Floats
    """Time over work done, from the release, or from the start for a job in a pack, whose wait for
    the packs before it is the schedule's; NaN for a job that is not there."""
    stretch_from_release: Floats
    stretch_from_start: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The figures of a run."""

    utilization: float
    """Useful computation over time held: sum of e_cpu / sum of T, T the time that a job held its
    nodes. At most `utilization_bound`."""
    max_stretch: float
    """The worst job's elapsed time over its effective work: largest T / (e_cpu + e_io). At least
    1. The time of a job in a pack counts from its start, of all others from their release."""
    io_slowdown: float
    """Time waiting for or doing I/O over isolated I/O time: geometric mean of in_io / e_phase. At
    least 1. A phase that the window cuts counts with its own slowdown."""
    min_yield: float
    """The worst job's effective work over elapsed time: smallest (e_cpu + e_io) / T, which is
    1 / max_stretch. At most 1."""
    efficiency: float
    """Effective work over elapsed time, weighted by nodes: sum of nodes (e_cpu + e_io) / sum of
    nodes T (Benoit et al. 2024). At most 1."""
    makespan: float
    """When the last job ended, in seconds."""
    utilization_bound: float
    """The utilization of the same work had no job waited: sum of e_cpu / sum of (e_cpu + e_io).
    Where all jobs of a workload run all the time, it tends to the bound of paper io-sets, which is
    1 - omega / N."""
    window: tuple[float, float]


def default_window(run: Run) -> tuple[float, float]:
    """Return the paper's steady-state part of the horizon, or all of the run without one."""
    match run.workload.steady_part:
        case (begin, end) if run.makespan > begin:
            return (begin, end)
    return (0.0, run.makespan)


def measure(run: Run, window: tuple[float, float] | None = None) -> Metrics:
    """Return the metrics of a run in a window."""
    window = window or default_window(run)
    jobs = measure_jobs(run, window)
    workload = run.workload
    there = jobs.present > 0
    if not there.any():
        raise InputError(
            f"no job is there between {window[0]:g} and {window[1]:g} s (they end at "
            f"{run.makespan:g} s); choose another window"
        )
    nodes = workload.nodes
    work = jobs.compute + jobs.io
    slowdown = jobs.io_slowdown[np.isfinite(jobs.io_slowdown)]
    max_stretch = worst(jobs.stretch)
    held = float(jobs.running.sum())
    return Metrics(
        utilization=float(jobs.compute.sum()) / held if held else math.nan,
        max_stretch=max_stretch,
        io_slowdown=float(np.exp(np.log(slowdown).mean())) if len(slowdown) else math.nan,
        min_yield=1 / max_stretch,
        efficiency=float((nodes * work).sum() / (nodes * jobs.present).sum()),
        makespan=run.makespan,
        utilization_bound=float(jobs.compute.sum() / work.sum()) if work.any() else math.nan,
        window=window,
    )


def worst(stretch: Floats) -> float:
    """Return the largest stretch of the jobs that have one."""
    known = stretch[~np.isnan(stretch)]
    return float(known.max()) if len(known) else math.nan


def measure_jobs(run: Run, window: tuple[float, float]) -> JobMetrics:
    """Return every job's part of the window."""
    begin, end = window
    if not (0 <= begin < end < math.inf):
        raise InputError(f"window {begin:g}:{end:g} is empty; give BEGIN:END with BEGIN < END")
    workload = run.workload
    n = len(workload)
    compute, io, iterations, in_io, isolated = np.empty((5, n))
    # In blocks of jobs, so that a run of fifty million iterations needs no copies of that size.
    for first in range(0, n, JOBS_AT_ONCE):
        jobs = slice(first, min(n, first + JOBS_AT_ONCE))
        parts = _inside(run, jobs, begin, end)
        compute[jobs], io[jobs], iterations[jobs], in_io[jobs], isolated[jobs] = parts
    present = _overlap(workload.release, run.finish, begin, end)
    running = _overlap(run.start, run.finish, begin, end)
    with np.errstate(divide="ignore", invalid="ignore"):
        slowdown = np.where(isolated > 0, in_io / isolated, np.nan)
        by_release = np.where(present > 0, present / (compute + io), np.nan)
        by_start = np.where(running > 0, running / (compute + io), np.nan)
    return JobMetrics(
        present=present,
        running=running,
        compute=compute,
        io=io,
        iterations=iterations,
        in_io=in_io,
        isolated_io=isolated,
        io_slowdown=slowdown,
        stretch=np.where(workload.in_pack, by_start, by_release),
        stretch_from_release=by_release,
        stretch_from_start=by_start,
    )


def _overlap(start: Floats, stop: Floats, begin: float, end: float) -> Floats:
    inside: Floats = np.minimum(stop, end) - np.maximum(start, begin)
    return np.maximum(inside, 0.0)


def _inside(run: Run, jobs: slice, begin: float, end: float) -> list[Floats]:
    """Return the parts of a block of jobs inside the window: `compute` to `isolated_io`."""
    offsets = run.workload.offsets
    rows = slice(int(offsets[jobs.start]), int(offsets[jobs.stop]))
    heads = offsets[jobs] - rows.start
    request, stop = run.request[rows], run.end[rows]
    start = np.empty_like(stop)
    start[1:] = stop[:-1]
    start[heads] = run.start[jobs]
    computing = _overlap(start, request, begin, end)
    all_io = run.workload.isolated_io[rows]
    isolated = all_io * _fraction(request, stop, begin, end)
    moved = run.moved
    if moved is None:
        io = isolated
        part = _fraction(start, stop, begin, end)
    else:
        job = np.repeat(
            np.arange(jobs.start, jobs.stop), np.diff(offsets[jobs.start : jobs.stop + 1])
        )

        def done(time: float) -> Floats:
            """Return the isolated seconds done of each phase at a time."""
            seconds = np.where(stop <= time, all_io, 0.0)
            cut = np.flatnonzero((request < time) & (time < stop))
            if len(cut):
                if time not in moved:
                    raise ValueError(f"the run has no mark at {time:g} s; simulate with marks=")
                seconds[cut] = moved[time][job[cut]]
            return seconds

        io = done(end) - done(begin)
        work = run.workload.compute[rows] + all_io
        inside = (start >= begin) & (start < end)
        part = np.divide(computing + io, work, out=inside.astype(float), where=work > 0)
    in_io = _overlap(request, stop, begin, end)
    return [np.add.reduceat(each, heads) for each in (computing, io, part, in_io, isolated)]


def _fraction(since: Floats, until: Floats, begin: float, end: float) -> Floats:
    """Return which part of each span lies in the window, by time."""
    length = until - since
    part = np.divide(
        _overlap(since, until, begin, end), length, out=np.zeros_like(length), where=length > 0
    )
    # A span of no time at all counts whole where it lies.
    return np.where(length > 0, part, (since >= begin) & (since < end))
