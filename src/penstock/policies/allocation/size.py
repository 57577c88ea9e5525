"""size: all resources, divided among the running jobs by their compute nodes.

round(F c_j / sum of c), with at least one: paper forwarding, Section 5.4. Option `direct`: a job
whose part rounds to zero gets direct access, if the site allows it, as in the paper.
"""

from collections.abc import Mapping
from typing import ClassVar

from penstock.model import Job, JobId, Site, View
from penstock.policies._support.counts import MeasuredAllocator


class Size(MeasuredAllocator):
    """Counts in proportion to the running jobs' sizes."""

    needs: ClassVar[frozenset[str]] = frozenset({"nodes"})

    def __init__(self, *, measured: bool = True, direct: bool = False) -> None:
        super().__init__(measured=measured)
        self.direct = direct

    def size(self, job: Job) -> int:
        """Return the size of a job."""
        return job.nodes

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return a count in proportion to each job's size."""
        total = sum(self.size(job) for job in view.jobs.values())
        return {
            name: self._fit(job, view.site, round(view.site.resources * self.size(job) / total))
            for name, job in view.jobs.items()
        }

    def _fit(self, job: Job, site: Site, count: int) -> int:
        if count == 0 and self.direct and 0 in self.counts(job, site):
            return 0
        return self.fit(job, site, count)
