"""mckp: the counts with the highest sum of bandwidths that the site's resources allow.

A multiple-choice knapsack: one class per job, one item per count, the bandwidth as its value, the
site's resources as capacity. Solved exactly by dynamic programming; of equal sums the one with
fewer resources wins. Paper forwarding, Section 5.3.

Options: `divisible` gives a job only counts that divide its compute nodes (5.3, for balance);
`shared` reserves one resource for the jobs that get no other; each is expected to have its
bandwidth with one resource divided by the number of jobs (5.3); `default` is the count of a job
without a curve.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Curve, Job, JobId, Site, View
from penstock.policies._support import knapsack
from penstock.policies._support.counts import CurveAllocator

SHARED = -1
"""The item for a part of the shared resource."""


@dataclass(frozen=True, slots=True)
class _Items:
    """A job's counts, and the same as items of the knapsack."""

    counts: tuple[int, ...]
    table: knapsack.Table
    least: int
    """The weight of the lightest."""

    @classmethod
    def of(cls, items: Sequence[tuple[int, float]]) -> "_Items":
        table = knapsack.table([(max(n, 0), value) for n, value in items])
        return cls(tuple(n for n, _ in items), table, int(table[0].min()))


@lru_cache(maxsize=8192)
def _measured(curve: Curve, counts: tuple[int, ...]) -> _Items:
    """Return the items of a curve: the same at every decision while its job runs."""
    return _Items.of([(n, curve.bandwidth(n)) for n in counts])


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
        least = sum(each.least for each in items)
        fits = least <= capacity
        selection = (
            knapsack.solve_tables([each.table for each in items], capacity) if fits else None
        )
        if selection is None:
            ways = ["add resources"]
            ways += [] if view.site.direct else ["let jobs go direct (site.direct)"]
            ways += [] if self.shared else ["let them share one (option shared)"]
            reserve = ", one of them reserved for sharing" if self.shared else ""
            raise InputError(
                f"{len(jobs)} jobs need at least {least} resources and the site has "
                f"{view.site.resources}{reserve}; {', or '.join(ways)}"
            )
        counts = (each.counts[k] for each, k in zip(items, selection, strict=True))
        return {job.id: 1 if n == SHARED else n for job, n in zip(jobs, counts, strict=True)}

    def _items(self, job: Job, site: Site, running: int) -> _Items:
        if job.curve is None:
            if self.default == 0 and not site.direct:
                raise InputError(
                    f"job {job.id!r} has no curve and would go direct (option default is 0), which "
                    "the site does not allow; give a default of at least 1"
                )
            return _Items.of([(min(self.default, site.resources), 0.0)])
        counts = self.counts(job, site)
        if not (self.divisible or self.shared):
            return _measured(job.curve, tuple(counts))
        if self.divisible:
            counts = [n for n in counts if n == 0 or job.nodes % n == 0]
        items = [(n, job.curve.bandwidth(n)) for n in counts]
        if self.shared and 1 in job.curve.choices(1):
            items.append((SHARED, job.curve.bandwidth(1) / running))
        if not items:
            raise InputError(f"job {job.id!r} has no count that divides its {job.nodes} nodes")
        return _Items.of(items)
