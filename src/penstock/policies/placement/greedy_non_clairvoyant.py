"""greedy-non-clairvoyant: as many jobs on every resource.

Jobs by falling count, dealt out to the resources in turn, which is to those with the fewest jobs so
far. It needs to know nothing but the counts: paper io-resources, Section IV-B.
"""

import heapq
from collections import Counter
from itertools import chain
from typing import ClassVar

from penstock.model import View
from penstock.policies.base import NOBODY, Counts, Placement


class GreedyNonClairvoyant:
    """Round-robin over the resources."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def place(self, view: View, counts: Counts, staying: Placement = NOBODY) -> Placement:
        """Return resources for every job, the next ones in the round."""
        before = Counter(chain.from_iterable(staying.values()))
        jobs_on = [(before[r], r) for r in range(view.site.resources)]
        heapq.heapify(jobs_on)
        places = {}
        for name in sorted(counts, key=lambda name: (-counts[name], view.jobs[name].serial)):
            fewest = [heapq.heappop(jobs_on) for _ in range(counts[name])]
            places[name] = tuple(r for _, r in fewest)
            for jobs, r in fewest:
                heapq.heappush(jobs_on, (jobs + 1, r))
        return places
