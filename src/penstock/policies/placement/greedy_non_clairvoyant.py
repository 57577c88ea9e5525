"""greedy-non-clairvoyant: as many jobs on every resource.

Jobs by falling count, dealt out to the resources in turn. It needs to know nothing but the counts:
paper io-resources, Section IV-B.
"""

from collections.abc import Mapping
from typing import ClassVar

from penstock.model import JobId, ResourceId, View


class GreedyNonClairvoyant:
    """Round-robin over the resources."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def place(
        self, view: View, counts: Mapping[JobId, int]
    ) -> Mapping[JobId, tuple[ResourceId, ...]]:
        """Return resources for every job, the next ones in the round."""
        order = sorted(counts, key=lambda name: (-counts[name], view.jobs[name].serial))
        resources, dealt = view.site.resources, 0
        places = {}
        for name in order:
            places[name] = tuple((dealt + k) % resources for k in range(counts[name]))
            dealt += counts[name]
        return places
