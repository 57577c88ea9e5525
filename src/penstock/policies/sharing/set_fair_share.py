"""set-fair-share: set-10's sets, but all sets weigh the same.

Shows what the grouping alone is worth: paper io-sets, Section IV-D.
"""

from penstock.model import Job
from penstock.policies.sharing.set_10 import Set10


class SetFairShare(Set10):
    """Sets by order of magnitude of w_iter, equal shares between them."""

    def weight(self, job: Job) -> float:  # noqa: ARG002
        """Return one: no set comes before another."""
        return 1.0
