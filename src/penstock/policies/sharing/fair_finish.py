"""fair-finish: all the bandwidth to the phase nearest its end, unless its job has a good yield.

greedy-com (least remaining I/O) wastes the least compute time but lets a few jobs fall behind;
greedy-yield (lowest progress / age) looks after those and wastes much (Benoit et al., JPDC 2024).
This policy of ours multiplies the two, turn = remaining x yield^fairness: among jobs of equal yield
the least remaining I/O goes first, and a job that fell behind soon goes before it.

Option `fairness`: 0 is greedy-com, and larger values come ever closer to greedy-yield. At the
default it is ahead of set-10 on utilization, Max Stretch and IO-slowdown at once in the scenarios
of `penstock reproduce io-sets`, which reports it.
"""

from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Job, Request, View
from penstock.policies.base import ByArrival


class FairFinish(ByArrival):
    """One group, re-chosen at every event by remaining I/O times a power of the yield."""

    preemptive: ClassVar[bool] = True
    dynamic: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"progress", "remaining"})
    order: ClassVar[str | None] = None

    def __init__(self, *, fairness: float = 80.0) -> None:
        if not 0 <= fairness <= 1e6:
            raise InputError(f"fair-finish: fairness is {fairness:g}; give 0 to 1e6")
        self.fairness = fairness

    def group(self, job: Job) -> str:  # noqa: ARG002
        """Return the one group there is."""
        return "all"

    def turn(self, request: Request, view: View) -> float:
        """Return the request's remaining I/O, discounted by its job's yield."""
        age = view.age(request.job)
        job_yield = view.progress(request.job) / age if age > 0 else 1.0
        return float(view.remaining(request) * job_yield**self.fairness)
