"""longest-io: one job at a time; the longest I/O phase goes first.

Keeps the resource busy; short phases starve behind long ones. A phase of unknown length is
served last. Paper packs, Section 5.1 (Longest I/O).
"""

import math
from typing import ClassVar

from penstock.model import Request, View
from penstock.policies.sharing.exclusive_fcfs import ExclusiveFcfs


class LongestIo(ExclusiveFcfs):
    """One group, in order of the length of the phase, longest first."""

    needs: ClassVar[frozenset[str]] = frozenset({"io"})

    def turn(self, request: Request, view: View) -> float:  # noqa: ARG002
        """Return the length of the phase, longest first."""
        return math.inf if request.io is None else -request.io
