"""one: every job gets one resource (paper forwarding, Section 5.4)."""

from collections.abc import Mapping

from penstock.model import JobId, View
from penstock.policies._support.counts import MeasuredAllocator


class One(MeasuredAllocator):
    """One resource each, or the smallest count that is known of a job."""

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return one for every job."""
        return {name: self.fit(job, view.site, 1) for name, job in view.jobs.items()}
