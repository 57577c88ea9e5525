"""token-bucket: bandwidth by compute nodes; what a job does not use is lent, and paid back.

Every job earns tokens, seconds of the whole bandwidth, in proportion to its compute nodes, and
spends them on its I/O. Nobody waits: while some jobs compute, the others borrow what they do not
use, and their tokens go below zero. A job with tokens weighs more than its nodes, one in debt less,
so that a job that lent is served first when it comes back. This is the idea of AdapTBF (arXiv
2602.22409), which does it on each server of a file system, as a sharing policy. In paper io-sets
shares follow periods instead of nodes.

Options: `depth`, the tokens that a job can save or owe, in seconds; `repay`, by what a full bucket
multiplies a job's weight, and an empty one divides it; `period`, seconds between two accounts.
"""

from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Event, Job, JobId, View
from penstock.policies.base import ByArrival, Own


class TokenBucket(ByArrival):
    """Each job is a group of its own, weighted by its nodes and its tokens."""

    needs: ClassVar[frozenset[str]] = frozenset({"progress"})
    reweighs: ClassVar[bool] = True

    def __init__(self, *, depth: float = 60.0, repay: float = 4.0, period: float = 5.0) -> None:
        if not (0 < depth < float("inf") and 1 <= repay <= 1e6 and 0 < period < float("inf")):
            raise InputError("token-bucket: give depth and period above 0, and repay from 1 to 1e6")
        self.depth, self.repay, self.period = depth, repay, period
        self._tokens: dict[JobId, float] = {}
        self._spent: dict[JobId, float] = {}
        self._account = self._next_account = 0.0

    def group(self, job: Job) -> Own:  # noqa: ARG002
        """Return the job's own group: no job waits."""
        return Own.GROUP

    def weight(self, job: Job) -> float:
        """Return the job's nodes, times a power of `repay` by how full its bucket is."""
        fullness = self._tokens.get(job.id, 0.0) / self.depth
        return float(job.nodes * self.repay**fullness)

    def observe(self, event: Event, view: View) -> float | None:  # noqa: ARG002
        """Give the tokens of the time since the last event, and take those that were spent."""
        passed, self._account = view.now - self._account, view.now
        nodes = sum(job.nodes for job in view.jobs.values())
        for job in view.jobs.values():
            spent = view.io_done(job) * job.max_share
            earned = passed * job.nodes / nodes - (spent - self._spent.get(job.id, 0.0))
            tokens = self._tokens.get(job.id, 0.0) + earned
            self._tokens[job.id] = min(max(tokens, -self.depth), self.depth)
            self._spent[job.id] = spent
        for gone in self._tokens.keys() - view.jobs.keys():
            del self._tokens[gone], self._spent[gone]
        if view.now < self._next_account:
            return None
        self._next_account = view.now + self.period
        return self._next_account
