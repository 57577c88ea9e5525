"""dominant-share: no packs; jobs queue for nodes and I/O together.

A job queues for the larger of its two shares: its nodes Q of the partition's P, and the part r / S
of the I/O node that it takes, r being the I/O part of its time alone. The jobs that run together
then never ask for more than S of the I/O node's time, at any moment and not only on average over a
pack. Nodes that a claim holds beyond the job's own stay idle.

Jobs are first spread over the I/O nodes, longest first, by the time for which each keeps all nodes
of a partition or its I/O node busy; each I/O node's queue has the order of pack-partition's packs,
without their barriers.

Ours, for what paper packs (Section 7) calls its natural first step: a bandwidth-aware strategy
without packs. The dominant share is that of Ghodsi et al., "Dominant Resource Fairness", NSDI 2011.

Option `sensitivity`: S, as pack-partition's. At the default makespans are first-fit's or shorter,
with the stretch of pack-partition at S = 1: see `penstock reproduce packs`.
"""

import math
from collections.abc import Sequence

from penstock.model import Job, Schedule, Site
from penstock.policies._support.packs import (
    longest_jobs_first,
    partition_nodes,
    spread_longest_first,
)
from penstock.policies.packing.pack_partition import PackPartition


class DominantShare(PackPartition):
    """One queue per I/O node, for nodes and I/O together."""

    def __init__(self, *, sensitivity: float | str = 2.0) -> None:
        super().__init__(sensitivity=sensitivity)

    def pack(self, jobs: Sequence[Job], site: Site) -> Schedule:
        """Return packs of all jobs, without barriers, and what each job claims."""
        sized = longest_jobs_first(jobs, site)
        partition, bound = partition_nodes(site), self.bound(sized, site)
        placed = spread_longest_first(
            sized, lambda s: max(s.nodes * s.time / partition, s.io), site
        )
        packs = []
        for io_node in range(site.resources):
            here = {job.job.id for job, place in placed if place == io_node}
            own = self.packs([job for job in sized if job.job.id in here], site, bound)
            own.sort(key=lambda pack: -pack.length)
            packs += [pack.close(io_node) for pack in own]
        claims = {
            job.job.id: min(partition, max(job.nodes, math.ceil(partition * job.io_part / bound)))
            for job in sized
        }
        return Schedule(packs=tuple(packs), barriers=False, claims=claims)
