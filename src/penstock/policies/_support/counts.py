"""A base for allocators: the counts that a job may have, and what each would give."""

from functools import lru_cache
from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Curve, Job, Site
from penstock.model.load import Options


class CurveAllocator:
    """A base for allocators.

    Option `measured`: give only counts at which the curve was measured (the default of paper
    forwarding's policies); otherwise also counts in between, with interpolated bandwidth (our
    choice for paper io-resources, which leaves it open).
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    sticky: ClassVar[bool] = False
    goes_direct: ClassVar[bool] = True
    """Direct access is among the choices, if the site has it."""

    def __init__(self, *, measured: bool = False) -> None:
        self.measured = measured

    def counts(self, job: Job, site: Site) -> list[int]:
        """Return the counts that the job may have."""
        direct = site.direct and self.goes_direct
        if job.curve is None:
            return ([0] if direct else []) + list(range(1, site.resources + 1))
        counts = list(_choices(job.curve, site.resources, self.measured, direct))
        if not counts:
            raise InputError(
                f"job {job.id!r} has a curve at {list(job.curve.counts)}, none possible "
                f"with {site.resources} resources{'' if direct else ' and no direct access'}"
            )
        return counts

    def fit(self, job: Job, site: Site, limit: int) -> int:
        """Return the largest count that the job may have up to `limit`, else its smallest.

        Direct access is returned only if the job may have nothing else.
        """
        counts = [n for n in self.counts(job, site) if n > 0] or self.counts(job, site)
        return max((n for n in counts if n <= limit), default=counts[0])

    def options(self, job: Job, site: Site) -> Options:
        """Return the effect of each count on the job."""
        if job.curve is None:
            raise InputError(f"job {job.id!r} has no curve; measure one, or use static")
        for name, value in (("compute", job.compute), ("volume", job.volume)):
            if value is None and name in self.needs:
                raise InputError(
                    f"job {job.id!r} has no {name}, which {type(self).__name__} needs; give it, or "
                    "use best-bandwidth"
                )
        # What a policy does not need makes no difference to its choice.
        counts = tuple(self.counts(job, site))
        return _options(job.curve, counts, job.nodes, job.compute, job.volume)


@lru_cache(maxsize=8192)
def _choices(curve: Curve, most: int, measured: bool, direct: bool) -> tuple[int, ...]:
    """Return the counts of a curve: the same at every decision while the site stays the same."""
    return tuple(curve.choices(most, measured=measured, direct=direct))


@lru_cache(maxsize=8192)
def _options(
    curve: Curve,
    counts: tuple[int, ...],
    nodes: int,
    compute: float | None,
    volume: float | None,
) -> Options:
    """Return the options of a job: the same at every decision while it runs."""
    return Options.of(
        curve,
        counts,
        nodes=nodes,
        compute=0.0 if compute is None else compute,
        volume=1.0 if volume is None else volume,
    )


class MeasuredAllocator(CurveAllocator):
    """A base for the allocators of paper forwarding: measured counts by default."""

    def __init__(self, *, measured: bool = True) -> None:
        super().__init__(measured=measured)
