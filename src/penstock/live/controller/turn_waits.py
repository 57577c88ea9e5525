"""How long phases waited for their turns, for `/metrics`."""

from bisect import bisect_left
from collections import defaultdict

WAIT_BOUNDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 30.0, 120.0)
"""Upper bounds of the histogram's buckets, in seconds."""


class TurnWaits:
    """A histogram of the waits for turns, and their sum by user."""

    def __init__(self) -> None:
        self.counts = [0] * (len(WAIT_BOUNDS) + 1)
        self.seconds = 0.0
        self.by_user: defaultdict[str, float] = defaultdict(float)

    def add(self, seconds: float, user: str = "") -> None:
        """Count the wait of one phase."""
        self.counts[bisect_left(WAIT_BOUNDS, seconds)] += 1
        self.seconds += seconds
        self.by_user[user] += seconds
