"""pack-partition: jobs run together only if the bandwidth suffices for all of them.

The longest job (alone) comes first; each goes into the fullest pack that has nodes for it and whose
I/O load L (the I/O time of its jobs over its longest job's time) stays within a bound, else into a
new one. Then the packs are spread over the I/O nodes, longest first. Paper packs, Algorithm 1 and
6.2.4.

Option `sensitivity`: the bound S on L. 1 lets the I/O of a pack just fit into its time; "alpha" is
the I/O occupation of the whole workload (Eq. 6); "infinite" is first-fit. Any number in between
trades makespan on one I/O node for stretch.
Option `estimate`: the assumed length of a pack when it is given an I/O node: "isolated" (the
paper's, its longest job) or "io-bound" (ours: at least the I/O time of all its jobs, since the I/O
node serves them one at a time).
"""

import math
from collections.abc import Sequence
from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Job, Schedule, Site
from penstock.model.load import io_occupation
from penstock.policies._support.packs import (
    OpenPack,
    SizedJob,
    fill,
    fits,
    longest_jobs_first,
    partition_nodes,
    spread_longest_first,
)

ALPHA, INFINITE = "alpha", "infinite"
ISOLATED, IO_BOUND = "isolated", "io-bound"


class PackPartition:
    """Packs limited by their nodes and their I/O."""

    needs: ClassVar[frozenset[str]] = frozenset({"compute", "nodes", "volume"})

    def __init__(self, *, sensitivity: float | str = 1.0, estimate: str = ISOLATED) -> None:
        if estimate not in (ISOLATED, IO_BOUND):
            raise InputError(f"estimate is {estimate!r}; give {ISOLATED} or {IO_BOUND}")
        valid = sensitivity in (ALPHA, INFINITE) or (
            not isinstance(sensitivity, str) and sensitivity > 0
        )
        if not valid:
            raise InputError(
                f"sensitivity is {sensitivity!r}; give a number above zero, alpha or infinite"
            )
        self.sensitivity, self.estimate = sensitivity, estimate

    def pack(self, jobs: Sequence[Job], site: Site) -> Schedule:
        """Return packs of all jobs."""
        sized = longest_jobs_first(jobs, site)
        packs = self.packs(sized, site, self.bound(sized, site))
        placed = spread_longest_first(packs, self._length, site)
        return Schedule(packs=tuple(pack.close(io_node) for pack, io_node in placed))

    def packs(self, jobs: Sequence[SizedJob], site: Site, bound: float) -> list[OpenPack]:
        """Return the packs that Algorithm 1 makes of jobs, the longest first."""
        partition = partition_nodes(site)

        def place(pack: OpenPack, job: SizedJob) -> bool:
            room = fits(pack, job, partition=partition, sensitivity=bound)
            if room:
                pack.add(job)
            return room

        return fill(jobs, place)

    def _length(self, pack: OpenPack) -> float:
        return pack.length if self.estimate == ISOLATED else max(pack.length, pack.io)

    def bound(self, jobs: Sequence[SizedJob], site: Site) -> float:
        """Return S, for "alpha" the I/O occupation of these jobs."""
        if self.sensitivity == INFINITE:
            return math.inf
        if self.sensitivity != ALPHA:
            return float(self.sensitivity)
        io = [job.io for job in jobs]
        compute = [job.time - job.io for job in jobs]
        return io_occupation(partition_nodes(site), [job.nodes for job in jobs], compute, io)
