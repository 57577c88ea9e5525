"""shortest-remaining: one job at a time; the job with the least work left goes first.

Frees the machine as soon as possible; the others starve meanwhile. A job of unknown work is
served last. Paper packs, Section 5.1 (Shortest remaining).
"""

import math
from typing import ClassVar

from penstock.model import Request, View
from penstock.policies.sharing.exclusive_fcfs import ExclusiveFcfs


class ShortestRemaining(ExclusiveFcfs):
    """One group, in order of the work that the job has still to do."""

    needs: ClassVar[frozenset[str]] = frozenset({"work"})

    def turn(self, request: Request, view: View) -> float:
        """Return the work that the job has still to do."""
        left = view.work_left(request.job)
        return math.inf if math.isnan(left) else left
