"""What every allocator asks of a job: which counts it may have, and what each would give."""

from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Job, Site
from penstock.model.load import Options


class Choosing:
    """A base for allocators.

    Option `measured`: only counts at which the curve was measured are given (the default of paper
    forwarding's policies); else any in between too, with interpolated bandwidth (our choice for
    paper io-resources, which leaves it open).
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    sticky: ClassVar[bool] = False
    goes_direct: ClassVar[bool] = True
    """Whether direct access is among the choices, where the site has it."""

    def __init__(self, *, measured: bool = False) -> None:
        self.measured = measured

    def counts(self, job: Job, site: Site) -> list[int]:
        """Return the counts that the job may have."""
        direct = site.direct and self.goes_direct
        if job.curve is None:
            return ([0] if direct else []) + list(range(1, site.resources + 1))
        counts = job.curve.choices(site.resources, measured=self.measured, direct=direct)
        if not counts:
            raise InputError(
                f"job {job.id!r} has a curve at {list(job.curve.counts)}, none of which can be had "
                f"with {site.resources} resources{'' if direct else ' and no direct access'}"
            )
        return counts

    def fit(self, job: Job, site: Site, wanted: int) -> int:
        """Return the largest count that the job may have up to `wanted`, else its smallest.

        A wish for I/O nodes is never met by direct access.
        """
        counts = [n for n in self.counts(job, site) if n > 0] or self.counts(job, site)
        return max((n for n in counts if n <= wanted), default=counts[0])

    def options(self, job: Job, site: Site) -> Options:
        """Return what each count would mean for the job."""
        if job.curve is None:
            raise InputError(f"job {job.id!r} has no curve; measure one, or use static")
        return Options.of(
            job.curve,
            self.counts(job, site),
            nodes=job.nodes,
            compute=0.0 if job.compute is None else job.compute,
            volume=1.0 if job.volume is None else job.volume,
        )


class ChoosingMeasured(Choosing):
    """A base for the allocators of paper forwarding, who give what was measured by default."""

    def __init__(self, *, measured: bool = True) -> None:
        super().__init__(measured=measured)
