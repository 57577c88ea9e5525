"""lowest-id: one job at a time; the earliest submitted job goes first.

Simple, and unfair to late jobs. Paper packs, Section 5.1 (Lowest ID).
"""

from typing import ClassVar

from penstock.model import Request, View
from penstock.policies.sharing.exclusive_fcfs import ExclusiveFcfs


class LowestId(ExclusiveFcfs):
    """One group, in order of submission."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def turn(self, request: Request, view: View) -> float:  # noqa: ARG002
        """Return the job's place in order of submission."""
        return request.job.serial
