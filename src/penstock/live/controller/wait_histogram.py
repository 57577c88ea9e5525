"""How long phases waited for their turns, for `/metrics`."""

from bisect import bisect_left

WAIT_BOUNDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 30.0, 120.0)
"""Seconds: upper ends of the buckets in which waits for a turn are counted."""


class TurnWaits:
    """How long phases waited for their turns, in buckets; to be fed by who grants them."""

    def __init__(self) -> None:
        self.counts = [0] * (len(WAIT_BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count a turn that came after so many seconds."""
        self.counts[bisect_left(WAIT_BOUNDS, seconds)] += 1
        self.seconds += seconds
