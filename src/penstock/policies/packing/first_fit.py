"""first-fit: each job goes into the fullest pack that has nodes for it, whatever its I/O.

The longest job (alone) comes first. The baseline of paper packs (6.2.3), and pack-partition with an
infinite sensitivity.

Option `estimate`: the assumed length of a pack when it is given an I/O node: "isolated" (the
paper's, its longest job) or "io-bound" (at least the I/O time of all its jobs).
"""

from collections.abc import Sequence

from penstock.model import Job, Schedule, Site
from penstock.policies._support.packs import (
    BasePacker,
    OpenPack,
    SizedJob,
    fill,
    longest_jobs_first,
    partition_nodes,
)


class FirstFit(BasePacker):
    """Packs limited by their nodes alone."""

    def pack(self, jobs: Sequence[Job], site: Site) -> Schedule:
        """Return packs of all jobs."""
        partition = partition_nodes(site)

        def place(pack: OpenPack, job: SizedJob) -> bool:
            room = job.nodes <= partition - pack.nodes
            if room:
                pack.add(job)
            return room

        return self.spread(fill(longest_jobs_first(jobs, site), place), site)
