"""greedy-yield: all the bandwidth to the job that got the least of what it could have done.

A job's yield is the work it has done over its age; at every event the job with the lowest one
holds the resource. Best known policy for the worst-treated job: Benoit, Herault, Perotin, Robert
and Vivien, "Revisiting I/O bandwidth-sharing strategies for HPC applications", JPDC 2024.
"""

from typing import ClassVar

from penstock.model import Job, Request, View
from penstock.policies.base import ByArrival


class GreedyYield(ByArrival):
    """One group, re-chosen at every event by the lowest progress / age."""

    preemptive: ClassVar[bool] = True
    in_order: ClassVar[bool] = True
    dynamic: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"progress"})

    def group(self, job: Job) -> str:  # noqa: ARG002
        """Return the one group there is."""
        return "all"

    def turn(self, request: Request, view: View) -> float:
        """Return the job's yield so far; zero for a job of age zero, as its authors have it."""
        age = view.age(request.job)
        return view.progress(request.job) / age if age > 0 else 0.0
