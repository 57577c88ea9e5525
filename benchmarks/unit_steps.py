"""A time-stepped simulation of jobs on resources, as paper io-resources describes its own (V-B).

At each unit of time the status of every job is examined: it computes, or does I/O. Jobs that do I/O
on one resource alternate, a unit each, until their transfers are over. What a unit was too long for
counts for the next phase, so that rounding does not add up. The metric is taken as in
penstock.sim.evaluate.placements: until a job has ended and each has completed a phase, jobs
repeating.

`plain` looks at every job and every resource in every unit. `queued` is the same simulation, step
by step, as fast as we could make it in Python: it keeps queues and looks only where something is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from penstock.sim.evaluate.placements import JobSet

Places = Sequence[tuple[int, ...]]
COMPUTING, TRANSFERRING = 0, 1


def _lengths(jobs: JobSet, places: Places) -> tuple[list[float], list[float], list[int]]:
    """Units of compute and of isolated I/O in a phase, and phases, of every job."""
    counts = [len(where) for where in places]
    io = jobs.volume / jobs.bandwidth[np.arange(len(counts)), counts] / jobs.phases
    return (jobs.compute / jobs.phases).tolist(), io.tolist(), jobs.phases.tolist()


def _slowdown(jobs: JobSet, io_time: list[int], done: list[int]) -> float:
    moved = np.array(done) * jobs.volume / jobs.phases
    return float((np.array(io_time) * jobs.peak / moved).mean())


def plain(jobs: JobSet, places: Places) -> float:
    """Mean-I/O-SlowDown, examining everything in every unit."""
    compute, io, phases = _lengths(jobs, places)
    n = len(places)
    status = [COMPUTING] * n
    left_to_compute = list(compute)
    left = [dict.fromkeys(where, 0.0) for where in places]
    turns = [[j for j in range(n) if r in places[j]] for r in range(jobs.site.resources)]
    began, done, io_time = [0] * n, [0] * n, [0] * n
    now = 0
    while not (all(done) and any(done[j] >= phases[j] for j in range(n))):
        now += 1
        for resource, jobs_here in enumerate(turns):
            for k, j in enumerate(jobs_here):
                if status[j] == TRANSFERRING and left[j][resource] > 0:
                    left[j][resource] -= 1.0
                    jobs_here.append(jobs_here.pop(k))
                    break
        for j in range(n):
            if status[j] == COMPUTING:
                left_to_compute[j] -= 1.0
                if left_to_compute[j] <= 0:
                    status[j], began[j] = TRANSFERRING, now
                    for resource in places[j]:
                        left[j][resource] += io[j]
            elif all(rest <= 0 for rest in left[j].values()):
                status[j] = COMPUTING
                left_to_compute[j] += compute[j]
                done[j] += 1
                io_time[j] += now - began[j]
    return _slowdown(jobs, io_time, done)


def queued(jobs: JobSet, places: Places) -> float:
    """Mean-I/O-SlowDown, with a queue for each resource."""
    compute, io, phases = _lengths(jobs, places)
    n = len(places)
    queues: list[deque[int]] = [deque() for _ in range(jobs.site.resources)]
    left = [[0.0] * jobs.site.resources for _ in range(n)]
    computing = dict(enumerate(compute))
    over = [0.0] * n
    transfers, began, done, io_time = [0] * n, [0] * n, [0] * n, [0] * n
    waiting, now, ended = n, 0, False
    while waiting or not ended:
        now += 1
        ready = []
        for resource, queue in enumerate(queues):
            if not queue:
                continue
            j = queue.popleft()
            rest = left[j][resource] = left[j][resource] - 1.0
            if rest > 0:
                queue.append(j)
                continue
            transfers[j] -= 1
            if not transfers[j]:
                io_time[j] += now - began[j]
                done[j] += 1
                waiting -= done[j] == 1
                ended = ended or done[j] == phases[j]
                ready.append(j)
        for j in list(computing):
            computing[j] -= 1.0
            if computing[j] <= 0:
                over[j] = computing.pop(j)
                began[j] = now
                transfers[j] = len(places[j])
                for resource in places[j]:
                    left[j][resource] += io[j]
                    queues[resource].append(j)
        for j in ready:
            computing[j] = compute[j] + over[j]
    return _slowdown(jobs, io_time, done)
