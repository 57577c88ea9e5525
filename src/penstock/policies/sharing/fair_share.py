"""fair-share: every job that wants to transfer does, all with equal shares.

The behaviour of an unmanaged file system, and the reference of paper io-sets (Section IV-B).
"""

from penstock.model import Job
from penstock.policies.base import ByArrival, Own


class FairShare(ByArrival):
    """Each job is a group of its own, all of the same weight."""

    def group(self, job: Job) -> Own:  # noqa: ARG002
        """Return the job's own group: no job waits."""
        return Own.GROUP
