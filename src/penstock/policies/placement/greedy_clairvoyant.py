"""greedy-clairvoyant: as much I/O on every resource.

Jobs by falling I/O ratio T_io / (T_cpu + T_io), each on the resources that are occupied least so
far: paper io-resources, Section IV-B.
"""

import heapq
from functools import lru_cache
from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Curve, Job, View
from penstock.model.load import io_stress, io_time
from penstock.policies.base import NOBODY, Counts, Placement


class GreedyClairvoyant:
    """Longest I/O first, on the least occupied resources."""

    needs: ClassVar[frozenset[str]] = frozenset({"compute", "curve", "volume"})

    def place(self, view: View, counts: Counts, staying: Placement = NOBODY) -> Placement:
        """Return resources for every job."""
        ratio = {name: self._ratio(view.jobs[name], count) for name, count in counts.items()}
        load = [0.0] * view.site.resources
        for name, resources in staying.items():
            for r in resources:
                load[r] += self._ratio(view.jobs[name], len(resources))
        occupied = [(load[r], r) for r in range(view.site.resources)]
        heapq.heapify(occupied)
        places = {}
        for name in sorted(counts, key=lambda name: (-ratio[name], view.jobs[name].serial)):
            least = [heapq.heappop(occupied) for _ in range(counts[name])]
            places[name] = tuple(sorted(r for _, r in least))
            for before, r in least:
                heapq.heappush(occupied, (before + ratio[name], r))
        return places

    def _ratio(self, job: Job, count: int) -> float:
        if job.curve is None or job.volume is None or job.compute is None:
            raise InputError(
                f"job {job.id!r} lacks a curve, volume or compute time, which greedy-clairvoyant "
                "needs; use greedy-non-clairvoyant"
            )
        return _ratio(job.curve, job.volume, job.compute, count)


@lru_cache(maxsize=8192)
def _ratio(curve: Curve, volume: float, compute: float, count: int) -> float:
    """Return the I/O ratio: the same at every decision while a job keeps its count."""
    return float(io_stress(1, compute, io_time(volume, curve.bandwidth(count))))
