"""How often others may have the controller do something: what comes too soon has to wait.

So does all that the same connection says after it: the flood waits at its source. What would have
to wait for too long is refused, and its connection ends.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from penstock.live.protocol.client import FullError


class Rate(NamedTuple):
    """How many at once, and how many per second in the long run."""

    burst: int
    per_second: float


PHASES = Rate(burst=256, per_second=20.0)
"""Phases that a job begins: its agent may say anything, and each one is on the record."""
QUESTIONS = Rate(burst=16, per_second=10.0)
"""Questions of a user, whose answers take as long to write as there are jobs, and requests."""
BEGINNINGS = Rate(burst=1000, per_second=10.0)
"""Jobs that a user begins: each one is in the store and in the log."""
CONNECTIONS = Rate(burst=2000, per_second=50.0)
"""Connections of a user to the Unix socket: room for all that it may begin, and ask."""
JOB_LINES = Rate(burst=1000, per_second=1.0)
"""Lines of the log on the jobs of a user."""
LONGEST_DELAY = 4.0
"""Seconds from its arrival that a request waits at most: its sender waits longer for the answer."""
_USERS = 1024
"""Users whose paces are remembered."""
log = logging.getLogger("penstock.controller")


class TooFastError(FullError):
    """A user's requests come faster than they are answered."""


class Pace:
    """A pace that is kept by waiting."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._due = clock()  # when all so far would have come at the pace

    def delay(self, at_most: float = math.inf) -> float:
        """Count one; return for how many seconds it has to wait: more than `at_most` is no wait.

        What does not wait is not counted.
        """
        now = self._clock()
        due = max(self._due, now) + 1.0 / self._rate.per_second
        delay = max(due - now - self._rate.burst / self._rate.per_second, 0.0)
        if delay <= at_most:
            self._due = due
        return delay


class Paces:
    """The paces of users."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._paces: dict[str, Pace] = {}

    def delay(self, user: str, at_most: float = LONGEST_DELAY) -> float:
        """Count one of a user; return for how many seconds it has to wait, as `Pace.delay`."""
        if user not in self._paces and len(self._paces) >= _USERS:
            self._paces.pop(next(iter(self._paces)))  # the one that came first
        if user not in self._paces:
            self._paces[user] = Pace(self._rate, self._clock)
        return self._paces[user].delay(at_most)

    def wait(self, user: str, waited: float = 0.0) -> float:
        """Count one of a user; return for how many seconds it waits. TooFastError: for too many.

        `waited`: seconds since it arrived.
        """
        check_delay(user, waited)
        at_most = LONGEST_DELAY - waited
        if (delay := self.delay(user, at_most)) > at_most:
            raise TooFastError(
                f"{user}: requests come faster than {self._rate.per_second:g} per second"
            )
        return delay


def check_delay(user: str, waited: float) -> None:
    """Refuse a request that has waited for too long: TooFastError."""
    if waited > LONGEST_DELAY:
        raise TooFastError(f"{user}: requests come faster than they can be answered")


class JobLog:
    """Logs what becomes of jobs, with a bounded number of lines for each user."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._paces = Paces(JOB_LINES, clock)
        self._left_out: Counter[str] = Counter()

    def note(self, user: str, text: str, *values: object, level: int = logging.INFO) -> None:
        """Log a line about a job of a user, unless there were too many."""
        if self._paces.delay(user, at_most=0.0) > 0.0:
            self._left_out[user] += 1
            return
        if left_out := self._left_out.pop(user, 0):
            log.info("left out %d lines on jobs of user %s", left_out, user)
        log.log(level, text, *values)
