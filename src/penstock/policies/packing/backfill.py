"""backfill: pack-partition, with small jobs on nodes that become free before a pack ends.

A job that could only go into a later pack is placed behind a shorter job of an earlier one if it
needs no more nodes than that one frees, ends (without contention) before the pack's longest job
does, and keeps the pack's I/O load within the bound. Of several such jobs it follows the one with
the fewest unused nodes, then the one that ends last. Later packs become fewer and shorter.
Paper packs (Section 7) names it as the next step.

Options `sensitivity` and `estimate`: as pack-partition's.
"""

from collections.abc import Sequence

from penstock.model import JobId, Site
from penstock.policies._support.packs import (
    OpenPack,
    SizedJob,
    fill,
    fits,
    io_fits,
    partition_nodes,
)
from penstock.policies.packing.pack_partition import PackPartition


class Backfill(PackPartition):
    """Packs in whose gaps smaller jobs run."""

    def packs(self, jobs: Sequence[SizedJob], site: Site, bound: float) -> list[OpenPack]:
        """Return the packs that Algorithm 1 makes of jobs, the longest first, with gaps used."""
        partition = partition_nodes(site)
        # Of jobs that follow or are followed: when they end alone, and the nodes they still free.
        end: dict[JobId, float] = {}
        free: dict[JobId, int] = {}

        def place(pack: OpenPack, job: SizedJob) -> bool:
            if fits(pack, job, partition=partition, sensitivity=bound):
                pack.add(job)
                return True
            if not io_fits(pack, job, bound):
                return False
            gaps = [
                (free.get(s.job.id, s.nodes), -end.get(s.job.id, s.time), s.job.serial, s.job.id)
                for s in pack.jobs
            ]
            usable = [
                (nodes, since, serial, name)
                for nodes, since, serial, name in gaps
                if nodes >= job.nodes and job.time - since <= pack.length
            ]
            if not usable:
                return False
            nodes, since, _, leader = min(usable)
            pack.add(job, behind=leader)
            end[job.job.id], free[leader] = job.time - since, nodes - job.nodes
            return True

        return fill(jobs, place)
