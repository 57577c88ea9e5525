"""longest-remaining: one job at a time; the job with the most work left goes first.

Keeps the job on the critical path moving. A job of unknown work is served last.
Paper packs, Section 5.1 (Longest remaining).
"""

import math
from typing import ClassVar

from penstock.model import Request, View
from penstock.policies.sharing.exclusive_fcfs import ExclusiveFcfs


class LongestRemaining(ExclusiveFcfs):
    """One group, in order of the work that the job has still to do, most first."""

    needs: ClassVar[frozenset[str]] = frozenset({"work"})

    def turn(self, request: Request, view: View) -> float:
        """Return the work that the job has still to do, most first."""
        left = view.work_left(request.job)
        return math.inf if math.isnan(left) else -left
