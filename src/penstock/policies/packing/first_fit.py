"""first-fit: each job goes into the fullest pack that still has nodes for it, I/O unseen.

Jobs by falling time alone. The baseline of paper packs (6.2.3), and pack-partition with an infinite
sensitivity.

Option `estimate`: how long a pack is thought to last when it is given an I/O node: "isolated" (the
paper's, its longest job) or "io-bound" (at least the I/O time of all its jobs).
"""

from collections.abc import Sequence

from penstock.model import Job, Schedule, Site
from penstock.policies._support.packs import (
    Filling,
    Packing,
    Sized,
    by_falling_time,
    fill,
    partition_nodes,
)


class FirstFit(Packing):
    """Packs limited by their nodes alone."""

    def pack(self, jobs: Sequence[Job], site: Site) -> Schedule:
        """Return packs of all jobs."""
        partition = partition_nodes(site)

        def place(pack: Filling, job: Sized) -> bool:
            room = job.nodes <= partition - pack.nodes
            if room:
                pack.add(job)
            return room

        return self.spread(fill(by_falling_time(jobs, site), place), site)
