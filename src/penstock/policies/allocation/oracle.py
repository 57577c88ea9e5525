"""oracle: every job alone with its best count, as if resources never ran out.

An upper bound for any allocation, not a feasible one: paper forwarding, Section 5.4.
"""

from collections.abc import Mapping
from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Job, JobId, Site, View
from penstock.policies._support.counts import MeasuredAllocator


class Oracle(MeasuredAllocator):
    """n_perf of every job, even if the site does not have that many."""

    needs: ClassVar[frozenset[str]] = frozenset({"best-count"})
    offline: ClassVar[str] = "it gives jobs more than a site has; use best-bandwidth"

    def counts(self, job: Job, site: Site) -> list[int]:
        """Return all counts that are known of the job."""
        if job.curve is None:
            raise InputError(f"job {job.id!r} has no curve; measure one, or use static")
        most = job.curve.counts[-1]
        return job.curve.choices(most, measured=self.measured, direct=site.direct)

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return n_perf of every job."""
        return {name: self.options(job, view.site).n_perf for name, job in view.jobs.items()}
