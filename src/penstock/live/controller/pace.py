"""How often others may have the controller do something: what comes too soon has to wait.

So does all that the same connection says after it: the flood waits at its source.
"""

import time
from collections.abc import Callable
from typing import NamedTuple


class Rate(NamedTuple):
    """How many at once, and how many per second in the long run."""

    burst: int
    per_second: float


PHASES = Rate(burst=256, per_second=20.0)
"""Phases that a job begins: its agent may say anything, and each one is on the record."""
QUESTIONS = Rate(burst=16, per_second=10.0)
"""Questions of a user, whose answers take as long to write as there are jobs."""
_USERS = 1024
"""Users whose paces are remembered."""


class Pace:
    """A pace that is kept by waiting."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._due = clock()  # when all so far would have come at the pace

    def delay(self) -> float:
        """Count one; return for how many seconds it has to wait."""
        now = self._clock()
        self._due = max(self._due, now) + 1.0 / self._rate.per_second
        return max(self._due - now - self._rate.burst / self._rate.per_second, 0.0)


class Paces:
    """The paces of users."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._paces: dict[str, Pace] = {}

    def delay(self, user: str) -> float:
        """Count one of a user; return for how many seconds it has to wait."""
        if user not in self._paces and len(self._paces) >= _USERS:
            self._paces.pop(next(iter(self._paces)))  # the one that came first
        return self._paces.setdefault(user, Pace(self._rate)).delay()
