"""How often a job may begin phases: its agent may say anything, and each one is on the record."""

import time
from collections.abc import Callable

BURST, PER_SECOND = 256, 20.0
"""The number of phases that a job may begin at once, and per second in the long run."""


class PhasePace:
    """The pace of one job; a phase beyond it is late, and with it all that the job reports."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = clock()  # when the phases so far would have begun at the pace

    def delay(self) -> float:
        """Count a phase; return for how many seconds it has to wait."""
        now = self._clock()
        self._due = max(self._due, now) + 1.0 / PER_SECOND
        return max(self._due - now - BURST / PER_SECOND, 0.0)
