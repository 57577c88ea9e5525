"""no-barriers: pack-partition's order of jobs, without waiting for a pack to end.

Each I/O node works through its packs in order, and a job starts as soon as its partition has nodes
for it, in the order of the packs. Nodes no longer idle until a pack's longest job ends; jobs of two
packs may then meet, so that the bound on I/O holds only approximately. Paper packs (Section 7)
calls it the natural first step.

Options `sensitivity` and `estimate`: as pack-partition's.
"""

from collections.abc import Sequence
from dataclasses import replace

from penstock.model import Job, Schedule, Site
from penstock.policies.packing.pack_partition import PackPartition


class NoBarriers(PackPartition):
    """Packs as an order alone."""

    def pack(self, jobs: Sequence[Job], site: Site) -> Schedule:
        """Return packs of all jobs, without barriers."""
        return replace(super().pack(jobs, site), barriers=False)
