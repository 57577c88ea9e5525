"""share-priority: set-10's weights, but every job may transfer at any time.

Shows what the weights alone are worth: paper io-sets, Section IV-D (SHARE+PRIORITY).
"""

from penstock.model import Job
from penstock.policies.base import Own
from penstock.policies.sharing.set_10 import Set10


class SharePriority(Set10):
    """Each job is a group of its own, weighted by the order of magnitude of its w_iter."""

    def weight(self, job: Job) -> float:
        """Return 10^-set of the set that set-10 would choose."""
        return 10.0 ** -super().group(job)

    def group(self, job: Job) -> Own:  # type: ignore[override]  # noqa: ARG002
        """Return the job's own group: no job waits."""
        return Own.GROUP
