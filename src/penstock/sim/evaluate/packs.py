"""Evaluate schedules of packs by an exact run: mappings of jobs to I/O nodes (paper packs).

I/O nodes do not interact, so each is a run of its own: its jobs, its partition's nodes, one
resource. With barriers, the leaves of a pack (jobs that none is backfilled behind) make up the
barrier that the next pack waits for, and a job that others follow is a barrier of its own; without,
jobs queue in pack order for the nodes they need or claim.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.errors import InputError
from penstock.model import Job, JobId, Pack, Schedule, Site
from penstock.model.load import isolated_time
from penstock.policies._support.packs import partition_nodes
from penstock.policies.base import Packer, Sharing
from penstock.policies.sharing.exclusive_fcfs import ExclusiveFcfs
from penstock.sim.engine import simulate
from penstock.sim.run import Run
from penstock.sim.workload import Floats, Ints, Longs, Workload


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedRun:
    """When each job of a workload started and ended under a schedule."""

    workload: Workload
    schedule: Schedule
    site: Site
    start: Floats
    finish: Floats
    uncontended: float
    """When the last job would have ended, had every job been served at once."""

    @property
    def makespan(self) -> float:
        """When the last job ended."""
        return float(self.finish.max())

    @property
    def stretch(self) -> Floats:
        """Each job's time from its start over its time alone: (C - start) / T.

        The paper prints the inverse (Eq. 2) and means this: one is not delayed, two twice as long.
        """
        stretch: Floats = (self.finish - self.start) / self.workload.work
        return stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class PackMetrics:
    """The metrics of a schedule (paper packs, Sections 4.3 and 6.2.3)."""

    makespan: float
    max_stretch: float
    pack_stretch: float
    """Mean over packs of the pack's largest stretch (the paper's footnote 4)."""
    packs: int
    executing: float
    """Node time in computation or in I/O at full bandwidth, as a part of all node time."""
    delayed: float
    """Node time lost waiting for I/O."""
    idle: float
    """Node time without a job."""
    overrun: float
    """Makespan over the contention-free one (Figure 13)."""


def known_jobs(workload: Workload, site: Site | None = None) -> list[Job]:
    """Return the jobs as a packer may know them: nodes, compute time and volume in all."""
    workload = behind_one_io_node(workload)
    bandwidth = (site or Site()).bandwidth or 1.0
    compute = workload.total(workload.compute).tolist()
    volume = (bandwidth * workload.total(workload.io)).tolist()
    return [
        replace(job, compute=compute[job.serial], volume=volume[job.serial])
        for job in workload.jobs()
    ]


def run(workload: Workload, packer: Packer, sharing: Sharing, site: Site) -> PackedRun:
    """Pack the jobs of a workload and run them under a sharing policy."""
    return run_schedule(workload, packer.pack(known_jobs(workload, site), site), sharing, site)


def run_schedule(workload: Workload, schedule: Schedule, sharing: Sharing, site: Site) -> PackedRun:
    """Run a schedule under a sharing policy."""
    workload = behind_one_io_node(workload)
    serial = {workload.id(j): j for j in range(len(workload))}
    check(schedule, dict(zip(serial, workload.nodes.tolist(), strict=True)), site)
    start, finish = _run(workload, serial, schedule, sharing, site)
    _, alone = _run(_without_contention(workload), serial, schedule, sharing, site)
    return PackedRun(
        workload=workload,
        schedule=schedule,
        site=site,
        start=start,
        finish=finish,
        uncontended=float(alone.max()),
    )


def contention_free(
    jobs: Sequence[Job], schedule: Schedule, site: Site
) -> dict[JobId, tuple[float, float]]:
    """Return when each job would start and end if none ever waited for I/O."""
    alone = Workload(
        ids=[job.id for job in jobs],
        compute=[isolated_time(job, site) for job in jobs],
        io=np.zeros(len(jobs)),
        offsets=np.arange(len(jobs) + 1),
        release=np.zeros(len(jobs)),
        nodes=[job.nodes for job in jobs],
    )
    run = run_schedule(alone, schedule, ExclusiveFcfs(), site)
    times = zip(run.start.tolist(), run.finish.tolist(), strict=True)
    return {job.id: time for job, time in zip(jobs, times, strict=True)}


def even_site(site: Site) -> Site:
    """Return a site whose partitions are equal: nodes beyond a multiple are left over."""
    over = site.nodes % site.resources
    return replace(site, nodes=site.nodes - over) if over < site.nodes else site


def measure(run: PackedRun) -> PackMetrics:
    """Return the metrics of a run."""
    workload = run.workload
    serial = {workload.id(j): j for j in range(len(workload))}
    stretch = run.stretch
    worst = [max(stretch[serial[job]] for job in pack.jobs) for pack in run.schedule.packs]
    partitions = run.site.resources * partition_nodes(run.site)
    total = partitions * run.makespan
    executing = float((workload.nodes * workload.work).sum()) / total
    held = float((workload.nodes * (run.finish - run.start)).sum()) / total
    return PackMetrics(
        makespan=run.makespan,
        max_stretch=float(stretch.max()),
        pack_stretch=float(np.mean(worst)),
        packs=len(run.schedule.packs),
        executing=executing,
        delayed=held - executing,
        idle=1 - held,
        overrun=run.makespan / run.uncontended,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedFigures:
    """The metrics of a workload that is in packs already (paper packs, 4.3 and 6.2.3)."""

    pack_stretch: float
    """Mean over packs of the pack's largest (end - start) / time alone."""
    packs: int
    executing: float
    """Node time in computation or in I/O at full bandwidth, as a part of all node time; NaN, as
    the two below, where the site's compute nodes are not known."""
    delayed: float
    idle: float
    overrun: float
    """Makespan over the one without contention."""


def figures(run: Run) -> PackedFigures:
    """Return the metrics of a run whose jobs are in packs: those of one `pack`, or else `after`."""
    workload = run.workload
    from_start = (run.finish - run.start) / workload.work
    barrier, after = workload.barrier[workload.in_pack], workload.after[workload.in_pack]
    numbers = np.where(barrier >= 0, barrier, len(workload) + after)
    _, pack_of = np.unique(numbers, return_inverse=True)
    largest = np.zeros(int(pack_of.max()) + 1)
    np.maximum.at(largest, pack_of, from_start[workload.in_pack])
    total = run.site.nodes * run.makespan or math.nan
    executing = float((workload.nodes * workload.work).sum()) / total
    held = float((workload.nodes * (run.finish - run.start)).sum()) / total
    alone = simulate(_without_contention(workload), ExclusiveFcfs(), site=run.site)
    return PackedFigures(
        pack_stretch=float(largest.mean()),
        packs=len(largest),
        executing=executing,
        delayed=held - executing,
        idle=1 - held,
        overrun=run.makespan / alone.makespan,
    )


def check(schedule: Schedule, nodes: Mapping[JobId, int], site: Site) -> None:
    """Raise InputError unless every job is in one pack, and every pack fits where it is."""
    packed = [job for pack in schedule.packs for job in pack.jobs]
    if sorted(packed) != sorted(nodes):
        raise InputError("a schedule must have every job of the workload in exactly one pack")
    for pack in schedule.packs:
        if not 0 <= pack.io_node < site.resources:
            raise InputError(
                f"a pack is behind I/O node {pack.io_node}, but the site has 0 to "
                f"{site.resources - 1}"
            )
        if pack.behind and not schedule.barriers:
            raise InputError("a schedule without barriers places no job behind another")
        if schedule.barriers:
            _check_nodes(pack, nodes, partition_nodes(site))
    if schedule.claims and schedule.barriers:
        raise InputError("in a schedule with barriers jobs queue for nothing and claim nothing")


def _check_nodes(pack: Pack, nodes: Mapping[JobId, int], partition: int) -> None:
    """Raise InputError unless the partition has nodes for all that run in a pack at once."""
    used = sum(nodes[job] for job in pack.jobs if job not in pack.behind)
    if used > partition:
        raise InputError(f"a pack uses {used} nodes of a partition of {partition} (packs, Eq. 5)")
    followers: dict[JobId, int] = {}
    for job, leader in pack.behind.items():
        if leader not in pack.jobs or job not in pack.jobs:
            raise InputError(f"job {job!r} is behind {leader!r}, which is not in its pack")
        followers[leader] = followers.get(leader, 0) + nodes[job]
        if followers[leader] > nodes[leader]:
            raise InputError(
                f"jobs on {followers[leader]} nodes are behind {leader!r}, which frees only "
                f"{nodes[leader]}"
            )


def _run(
    workload: Workload,
    serial: Mapping[JobId, int],
    schedule: Schedule,
    sharing: Sharing,
    site: Site,
) -> tuple[Floats, Floats]:
    """Return when each job started and ended."""
    start, finish = np.empty(len(workload)), np.empty(len(workload))
    partition = replace(site, nodes=partition_nodes(site), resources=1)
    for io_node in range(site.resources):
        packs = list(schedule.behind_io_node(io_node))
        if not packs:
            continue
        order = [serial[job] for pack in packs for job in pack.jobs]
        # A queue serves jobs in their order; barriers leave them in that of their submission.
        jobs = np.sort(order) if schedule.barriers else np.array(order)
        part = _part(workload, jobs, packs if schedule.barriers else (), schedule.claims)
        ran = simulate(part, sharing, site=partition)
        start[jobs], finish[jobs] = ran.start, ran.finish
    return start, finish


def _part(
    workload: Workload, jobs: Longs, packs: Sequence[Pack], claims: Mapping[JobId, int]
) -> Workload:
    """Return some jobs of a workload as one of their own, in that order, behind barriers."""
    ids = [workload.id(int(j)) for j in jobs]
    barrier, after = barriers(ids, packs)
    nodes = [claims.get(name, n) for name, n in zip(ids, workload.nodes[jobs], strict=True)]
    return subset(workload, jobs, nodes=nodes, barrier=barrier, after=after)


def subset(
    workload: Workload,
    jobs: Longs,
    *,
    nodes: Sequence[int] | None = None,
    resources: Ints | None = None,
    barrier: Ints | None = None,
    after: Ints | None = None,
) -> Workload:
    """Return some jobs of a workload, in that order, each on one resource: 0 by default."""
    counts = np.diff(workload.offsets)[jobs]
    offsets = np.concatenate(([0], np.cumsum(counts)))
    rows = np.repeat(workload.offsets[jobs] - offsets[:-1], counts) + np.arange(offsets[-1])
    details = workload.details
    return Workload(
        ids=[workload.id(int(j)) for j in jobs],
        compute=workload.compute[rows],
        io=workload.io[rows],
        offsets=offsets,
        release=workload.release[jobs],
        nodes=workload.nodes[jobs] if nodes is None else nodes,
        max_share=workload.max_share[jobs],
        profile=None if workload.profile is None else workload.profile[jobs],
        resources=resources,
        barrier=barrier,
        after=after,
        details=None if details is None else [details[int(j)] for j in jobs],
    )


def barriers(ids: Sequence[JobId], packs: Sequence[Pack]) -> tuple[Ints, Ints]:
    """Return the barrier that each job counts for, and the one that it waits behind."""
    place = {job: k for k, job in enumerate(ids)}
    barrier, after = np.full(len(ids), -1, np.int32), np.full(len(ids), -1, np.int32)
    leaders = [leader for pack in packs for leader in dict.fromkeys(pack.behind.values())]
    own = {leader: len(packs) + k for k, leader in enumerate(leaders)}
    for number, pack in enumerate(packs):
        for job in pack.jobs:
            barrier[place[job]] = own.get(job, number)
            leader = pack.behind.get(job)
            after[place[job]] = number - 1 if leader is None else own[leader]
    return barrier, after


def behind_one_io_node(workload: Workload) -> Workload:
    """Return the same jobs, each with one resource: its curve says how long its I/O then takes."""
    if workload.curves is None:
        return workload
    scale = [workload.io_scale(j, 1) for j in range(len(workload))]
    return Workload(
        ids=workload.ids,
        compute=workload.compute,
        io=workload.io * np.repeat(scale, np.diff(workload.offsets)),
        offsets=workload.offsets,
        release=workload.release,
        nodes=workload.nodes,
        max_share=workload.max_share,
        profile=workload.profile,
        details=workload.details,
    )


def _without_contention(workload: Workload) -> Workload:
    """Return the same jobs doing all their I/O as if it were computation: no job waits."""
    return Workload(
        ids=workload.ids,
        compute=workload.work,
        io=np.zeros(len(workload)),
        offsets=np.arange(len(workload) + 1),
        release=workload.release,
        nodes=workload.nodes,
        barrier=workload.barrier,
        after=workload.after,
    )
