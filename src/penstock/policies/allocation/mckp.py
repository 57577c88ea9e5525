"""mckp: the counts with the highest sum of bandwidths that the site's resources allow.

A multiple-choice knapsack: one class per job, one item per count, the bandwidth as its value, the
site's resources as capacity. Solved exactly by dynamic programming; of equal sums the one with
fewer resources wins. Paper forwarding, Section 5.3.

Options: `divisible` gives a job only counts that divide its compute nodes (5.3, for balance);
`shared` reserves one resource for the jobs that get no other; each is expected to have its
bandwidth with one resource divided by the number of jobs (5.3); `default` is the count of a job
without a curve.
"""

from collections.abc import Mapping
from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Job, JobId, Site, View
from penstock.policies._support import knapsack
from penstock.policies._support.counts import CurveAllocator

SHARED = -1
"""The item for a part of the shared resource."""


class Mckp(CurveAllocator):
    """The exact optimum of the sum of bandwidths."""

    needs: ClassVar[frozenset[str]] = frozenset({"curve"})
    brings: ClassVar[str] = "exclusive"

    def __init__(
        self,
        *,
        measured: bool = True,
        divisible: bool = False,
        shared: bool = False,
        default: int = 1,
    ) -> None:
        super().__init__(measured=measured)
        if default < 0:
            raise InputError(f"mckp: default is {default}; give a count, zero or more")
        self.divisible = divisible
        self.shared = shared
        self.default = default

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return the counts of the best allocation."""
        jobs = list(view.jobs.values())
        capacity = view.site.resources - (1 if self.shared else 0)
        items = [self._items(job, view.site, len(jobs)) for job in jobs]
        selection = knapsack.solve(
            [[(max(n, 0), value) for n, value in choices] for choices in items], capacity
        )
        if selection is None:
            least = sum(min(max(n, 0) for n, _ in choices) for choices in items)
            ways = ["add resources"]
            ways += [] if view.site.direct else ["let jobs go direct (site.direct)"]
            ways += [] if self.shared else ["let them share one (option shared)"]
            reserve = ", one of them reserved for sharing" if self.shared else ""
            raise InputError(
                f"{len(jobs)} jobs need at least {least} resources and the site has "
                f"{view.site.resources}{reserve}; {', or '.join(ways)}"
            )
        counts = (choices[k][0] for choices, k in zip(items, selection, strict=True))
        return {job.id: 1 if n == SHARED else n for job, n in zip(jobs, counts, strict=True)}

    def _items(self, job: Job, site: Site, running: int) -> list[tuple[int, float]]:
        if job.curve is None:
            if self.default == 0 and not site.direct:
                raise InputError(
                    f"job {job.id!r} has no curve and would go direct (option default is 0), which "
                    "the site does not allow; give a default of at least 1"
                )
            return [(min(self.default, site.resources), 0.0)]
        counts = self.counts(job, site)
        if self.divisible:
            counts = [n for n in counts if n == 0 or job.nodes % n == 0]
        items = [(n, job.curve.bandwidth(n)) for n in counts]
        if self.shared and 1 in job.curve.choices(1):
            items.append((SHARED, job.curve.bandwidth(1) / running))
        if not items:
            raise InputError(f"job {job.id!r} has no count that divides its {job.nodes} nodes")
        return items
