"""exclusive-fcfs: one job transfers at a time, the others wait in order of arrival.

Good among jobs that are alike (their phases fall in step), bad for short phases behind long ones:
paper io-sets, Sections II-A and IV-B.
"""

from penstock.model import Job
from penstock.policies.base import ByArrival


class ExclusiveFcfs(ByArrival):
    """All jobs are one group."""

    def group(self, job: Job) -> str:  # noqa: ARG002
        """Return the one group there is."""
        return "all"
