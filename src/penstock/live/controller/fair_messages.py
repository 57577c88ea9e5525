"""Whose message the controller handles next: that of the user who took the least of its time.

A user with many busy connections has as much of the controller's time as one with a single
connection, and whatever else the controller does (heartbeats, answers, new connections) goes on in
each round of its loop. A message waits for those of one round, then for about as much of each other
user as its own user takes, however much any of them sends.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable

PER_ROUND = 8
"""Messages that are handled in one round at most."""
ROUND = 0.002
"""Seconds after which a round ends: no message is begun later."""
_USUAL = ROUND / PER_ROUND
"""Seconds that a message is charged until it is known how long it took."""


class FairMessages:
    """The messages that wait to be handled, by user."""

    def __init__(
        self, per_round: int = PER_ROUND, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_round, self._clock = per_round, clock
        self._left = per_round
        self._ends = math.inf  # the round: its time counts from its first message
        self._scheduled = False
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Users in the order in which they came, or had their last message handled."""
        self._taken: dict[str, float] = {}
        """Seconds of users, while any wait; whoever comes late has as many as who is next."""
        self._next = 0.0
        self._handled: tuple[str, float] | None = None
        """Whose message is handled, and since when."""

    async def next_of(self, user: str) -> float:
        """Return when the next message of a user is to be handled: at once where there is room.

        Return for how many seconds it waited.
        """
        came = self._clock()
        self._charge(came)
        if not self._scheduled:
            self._schedule()
            self._left, self._ends = self._per_round, math.inf
        if self._left and came < self._ends and not self._waiting:
            self._choose(user)
            self._begin(user, came)
            return 0.0
        message = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(message)
        while True:
            await message
            now = self._clock()
            self._charge(now)
            if now < self._ends:
                self._begin(user, now)
                return now - came
            # The round is over: it stays the first of its user.
            self._taken[user] = self._taken.get(user, 0.0) - _USUAL
            message = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(user, deque()).appendleft(message)

    def _choose(self, user: str) -> None:
        self._left -= 1
        self._next = max(self._taken.get(user, 0.0), self._next)
        self._taken[user] = self._next + _USUAL

    def _begin(self, user: str, now: float) -> None:
        self._handled = user, now
        self._ends = min(self._ends, now + ROUND)

    def _charge(self, now: float) -> None:
        """The message that was handled is done, or waits for something else."""
        if self._handled is not None:
            user, since = self._handled
            self._handled = None
            self._taken[user] = self._taken.get(user, 0.0) + now - since - _USUAL

    def _schedule(self) -> None:
        self._scheduled = True
        asyncio.get_running_loop().call_soon(self._begin_round)

    def _begin_round(self) -> None:
        now = self._clock()
        self._charge(now)
        self._left, self._ends = self._per_round, math.inf
        while self._waiting and self._left:
            user = min(self._waiting, key=lambda user: self._taken.get(user, 0.0))
            messages = self._waiting.pop(user)
            message = messages.popleft()
            if messages:
                self._waiting[user] = messages  # after all others that took as much
            if not message.done():  # its connection may have ended
                message.set_result(None)
                self._choose(user)
        self._scheduled = False
        if self._left < self._per_round:
            self._schedule()
        else:
            self._taken.clear()
            self._next = 0.0
