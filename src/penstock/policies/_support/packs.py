"""The parts of packers: size the jobs, fill packs one by one, spread them over the I/O nodes.

A site of R resources has R partitions of P = nodes / R compute nodes, each behind one I/O node
(paper packs, Section 4.1).
"""

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from penstock.errors import InputError
from penstock.model import Job, JobId, Pack, ResourceId, Site
from penstock.model.load import isolated_io, isolated_time

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedJob:
    """A job with its nodes Q, its time alone T, and its I/O time."""

    job: Job
    nodes: int
    time: float
    io: float

    @property
    def io_part(self) -> float:
        """The fraction of its time alone that is I/O."""
        return self.io / self.time


@dataclass(slots=True, kw_only=True)
class OpenPack:
    """A pack that is being filled (paper packs, Section 5.2).

    `nodes` is P^Pack of the jobs that start with it, `length` is T^Pack, its longest job alone,
    and `io` the I/O time of all its jobs, L^Pack T^Pack.
    """

    jobs: list[SizedJob] = field(default_factory=list)
    behind: dict[JobId, JobId] = field(default_factory=dict)
    nodes: int = 0
    length: float = 0.0
    io: float = 0.0

    def add(self, job: SizedJob, *, behind: JobId | None = None) -> None:
        """Add a job: to start with the pack, or behind a job whose nodes it uses next."""
        self.jobs.append(job)
        self.io += job.io
        if behind is None:
            self.nodes += job.nodes
            self.length = max(self.length, job.time)
        else:
            self.behind[job.job.id] = behind

    def close(self, io_node: ResourceId) -> Pack:
        """Return the pack, behind an I/O node."""
        names = tuple(sized.job.id for sized in self.jobs)
        return Pack(io_node=io_node, jobs=names, behind=self.behind)


def spread_longest_first(
    items: Iterable[T], length: Callable[[T], float], site: Site
) -> list[tuple[T, ResourceId]]:
    """Assign items to I/O nodes: the longest first, each to the one that is free earliest."""
    ends = [(0.0, io_node) for io_node in range(site.resources)]
    placed = []
    for item in sorted(items, key=lambda item: -length(item)):
        end, io_node = heapq.heappop(ends)
        heapq.heappush(ends, (end + length(item), io_node))
        placed.append((item, io_node))
    return placed


def partition_nodes(site: Site) -> int:
    """Return P, the compute nodes behind one I/O node."""
    if site.nodes < 1:
        raise InputError("packs fill compute nodes, but the site has none; set site.nodes")
    if site.nodes % site.resources:
        raise InputError(
            f"{site.nodes} compute nodes do not divide into {site.resources} partitions, one "
            "behind each I/O node; give a multiple"
        )
    return site.nodes // site.resources


def longest_jobs_first(jobs: Sequence[Job], site: Site) -> list[SizedJob]:
    """Sort jobs by their time alone, the longest first; equals stay in order of submission."""
    partition = partition_nodes(site)
    for job in jobs:
        if not 1 <= job.nodes <= partition:
            raise InputError(
                f"job {job.id!r} needs {job.nodes} nodes, but a partition has {partition}"
                f" ({site.nodes} nodes behind {site.resources} I/O nodes); "
                "use fewer I/O nodes or drop the job"
            )
    sized = [
        SizedJob(job=j, nodes=j.nodes, time=isolated_time(j, site), io=isolated_io(j, site))
        for j in jobs
    ]
    return sorted(sized, key=lambda s: (-s.time, s.job.serial))


def fill(jobs: Iterable[SizedJob], place: Callable[[OpenPack, SizedJob], bool]) -> list[OpenPack]:
    """Put each job into the fullest pack that `place` accepts it in, else into a new one.

    Algorithm 1 of paper packs.
    """
    packs: list[OpenPack] = []
    for job in jobs:
        if not any(place(pack, job) for pack in packs):
            packs.append(OpenPack())
            packs[-1].add(job)
        packs.sort(key=lambda pack: -pack.nodes)
    return packs


def fits(pack: OpenPack, job: SizedJob, *, partition: int, sensitivity: float) -> bool:
    """Return True if a job may start with a pack: Eq. (5), and Eq. (4) with the present T^Pack."""
    return job.nodes <= partition - pack.nodes and io_fits(pack, job, sensitivity)


def io_fits(pack: OpenPack, job: SizedJob, sensitivity: float) -> bool:
    """Return True if a pack has I/O time left for a job: v / b <= (S - L) T, Eq. (4)."""
    return sensitivity == math.inf or job.io <= sensitivity * pack.length - pack.io
