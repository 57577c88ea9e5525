"""fair-finish: all the bandwidth to the phase nearest its end, unless its job has a good yield.

greedy-com (least remaining I/O) wastes the least compute time but lets a few jobs fall behind;
greedy-yield (lowest progress / age) looks after those and wastes much (Benoit et al., JPDC 2024).
This policy of ours multiplies the two, turn = remaining x yield^fairness: among jobs of equal yield
the least remaining I/O goes first, and a job that fell behind soon goes before it.

Options: `fairness`, 0 is greedy-com, and larger values come ever closer to greedy-yield; `hedge`
and `unknown`, as in greedy-com, for lengths that are estimates. `penstock reproduce io-sets` has a
table over `fairness`, with exact lengths and with wrong ones.
"""

from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Job, Request, View
from penstock.policies._support.left import check, left
from penstock.policies.base import ByArrival


class FairFinish(ByArrival):
    """One group, re-chosen at every event by remaining I/O times a power of the yield."""

    preemptive: ClassVar[bool] = True
    in_order: ClassVar[bool] = True
    dynamic: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"progress", "remaining"})

    def __init__(
        self, *, fairness: float = 80.0, hedge: float = 0.2, unknown: float = 100.0
    ) -> None:
        if not 0 <= fairness <= 1e6:
            raise InputError(f"fair-finish: fairness is {fairness:g}; give 0 to 1e6")
        check("fair-finish", hedge=hedge, unknown=unknown)
        self.fairness, self.hedge, self.unknown = fairness, hedge, unknown

    def group(self, job: Job) -> str:  # noqa: ARG002
        """Return the one group there is."""
        return "all"

    def turn(self, request: Request, view: View) -> float:
        """Return the request's remaining I/O, discounted by its job's yield."""
        age = view.age(request.job)
        job_yield = view.progress(request.job) / age if age > 0 else 1.0
        rest = left(request, view, hedge=self.hedge, unknown=self.unknown)
        return float(rest * job_yield**self.fairness)
