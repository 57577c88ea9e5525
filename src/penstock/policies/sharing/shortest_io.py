"""shortest-io: one job at a time; the shortest I/O phase goes first.

Avoids long waits behind long phases. A phase of unknown length is served last. Paper packs,
Section 5.1 (Shortest I/O).
"""

import math
from typing import ClassVar

from penstock.model import Request, View
from penstock.policies.sharing.exclusive_fcfs import ExclusiveFcfs


class ShortestIo(ExclusiveFcfs):
    """One group, in order of the length of the phase."""

    needs: ClassVar[frozenset[str]] = frozenset({"io"})

    def turn(self, request: Request, view: View) -> float:  # noqa: ARG002
        """Return the length of the phase."""
        return math.inf if request.io is None else request.io
