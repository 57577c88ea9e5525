"""A schedule of packs as a workload, which the simulator runs as any other.

A job's `pack` is the barrier that it counts for, and `after` the one that it waits for; its only
resource is the I/O node of its pack. Such a workload can hold packs with barriers behind any number
of I/O nodes, and the queue of a single one; the queues of several I/O nodes it cannot.
"""

import numpy as np

from penstock.errors import InputError
from penstock.model import Job, Schedule, Site
from penstock.model.load import isolated_io
from penstock.sim.evaluate import packs
from penstock.sim.evaluate.placements import PHASES
from penstock.sim.workload import Workload


def packed(workload: Workload, schedule: Schedule, site: Site) -> Workload:
    """Return the jobs of a workload in the packs of a schedule."""
    workload = packs.behind_one_io_node(workload)
    serial = {workload.id(j): j for j in range(len(workload))}
    packs.check(schedule, dict(zip(serial, workload.nodes.tolist(), strict=True)), site)
    if not schedule.barriers:
        return _queue(workload, schedule, site, serial)
    n = len(workload)
    resources = np.zeros(n, np.int32)
    barrier, after = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    used = 0
    for io_node in range(site.resources):
        here = list(schedule.behind_io_node(io_node))
        names = [job for pack in here for job in pack.jobs]
        jobs = np.array([serial[name] for name in names], np.int64)
        own, behind = packs.barriers(names, here)
        barrier[jobs] = own + used
        after[jobs] = np.where(behind < 0, -1, behind + used)
        resources[jobs] = io_node
        used += int(own.max(initial=-1)) + 1
    return packs.subset(workload, np.arange(n), resources=resources, barrier=barrier, after=after)


def from_jobs(jobs: list[Job], site: Site) -> Workload:
    """Return jobs of which only totals are known, with phases that are alike.

    A job has an iteration per w_iter of its time alone; where that is not known, it has as many as
    jobs of paper io-resources have on average.
    """
    io = [isolated_io(job, site) for job in jobs]
    compute = [job.compute or 0.0 for job in jobs]
    counts = [
        PHASES if not job.w_iter else max(1, round((c + x) / job.w_iter))
        for job, c, x in zip(jobs, compute, io, strict=True)
    ]
    return Workload(
        ids=[job.id for job in jobs],
        compute=np.repeat(np.divide(compute, counts), counts),
        io=np.repeat(np.divide(io, counts), counts),
        offsets=np.concatenate(([0], np.cumsum(counts))),
        release=np.zeros(len(jobs)),
        nodes=[job.nodes for job in jobs],
    )


def _queue(workload: Workload, schedule: Schedule, site: Site, serial: dict[str, int]) -> Workload:
    """Return the jobs in the order of the only I/O node's queue."""
    if site.resources > 1 or schedule.claims:
        raise InputError(
            "a schedule without barriers is a queue per I/O node, in which jobs may wait for more "
            "nodes than they use; a workload file holds neither, but 'penstock compare FILE "
            "--packing A,B' simulates it exactly"
        )
    order = np.array([serial[job] for pack in schedule.packs for job in pack.jobs])
    return packs.subset(workload, order)
