"""dominant-share: pack-partition's order without barriers, and no more I/O at once than bearable.

As no-barriers, but a job queues for the larger of its two shares: its nodes Q of the partition's P,
and the part r / S of the I/O node that it takes, r being the I/O part of its time alone. The jobs
that run together then never ask for more than S of the I/O node's time, at any moment and not only
on average over a pack. Nodes that a claim holds beyond the job's own stay idle.

Ours, for what paper packs (Section 7) calls its natural first step: a bandwidth-aware strategy
without packs. The dominant share is that of Ghodsi et al., "Dominant Resource Fairness", NSDI 2011.

Option `sensitivity`: S, as pack-partition's; at the default, makespans are about first-fit's and
stretch far below. Option `estimate`: as pack-partition's.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from penstock.model import Job, Schedule, Site
from penstock.policies.packing.no_barriers import NoBarriers
from penstock.policies.packing.packs import ISOLATED, by_falling_time, partition_nodes


class DominantShare(NoBarriers):
    """A queue for nodes and I/O together."""

    def __init__(self, *, sensitivity: float | str = 2.0, estimate: str = ISOLATED) -> None:
        super().__init__(sensitivity=sensitivity, estimate=estimate)

    def pack(self, jobs: Sequence[Job], site: Site) -> Schedule:
        """Return packs of all jobs, without barriers, and what each job claims."""
        sized = by_falling_time(jobs, site)
        partition, bound = partition_nodes(site), self.bound(sized, site)
        claims = {
            job.job.id: min(partition, max(job.nodes, math.ceil(partition * job.io_part / bound)))
            for job in sized
        }
        return replace(super().pack(jobs, site), claims=claims)
