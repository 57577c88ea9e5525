"""oracle: every job alone with its best count, as if resources never ran out.

Not to be had, but an upper bound of what any allocation can give: paper forwarding, Section 5.4.
"""

from collections.abc import Mapping
from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Job, JobId, Site, View
from penstock.policies._support.counts import ChoosingMeasured


class Oracle(ChoosingMeasured):
    """n_perf of every job, be it more than the site has."""

    needs: ClassVar[frozenset[str]] = frozenset({"best-count"})

    def counts(self, job: Job, site: Site) -> list[int]:
        """Return all counts that are known of the job."""
        if job.curve is None:
            raise InputError(f"job {job.id!r} has no curve; measure one, or use static")
        most = job.curve.counts[-1]
        return job.curve.choices(most, measured=self.measured, direct=site.direct)

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return n_perf of every job."""
        return {name: self.options(job, view.site).n_perf for name, job in view.jobs.items()}
