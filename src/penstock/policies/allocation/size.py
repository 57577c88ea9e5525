"""size: all resources, divided among the running jobs by their compute nodes.

round(F c_j / sum of c), with at least one: paper forwarding, Section 5.4.
"""

from collections.abc import Mapping
from typing import ClassVar

from penstock.model import Job, JobId, View
from penstock.policies.allocation.choices import ChoosingMeasured


class Size(ChoosingMeasured):
    """Counts by the job's part of what runs now."""

    needs: ClassVar[frozenset[str]] = frozenset({"nodes"})

    def size(self, job: Job) -> int:
        """Return what jobs are measured by."""
        return job.nodes

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return a count in proportion to each job's size."""
        total = sum(self.size(job) for job in view.jobs.values())
        return {
            name: self.fit(
                job, view.site, max(1, round(view.site.resources * self.size(job) / total))
            )
            for name, job in view.jobs.items()
        }
