"""Whose message the controller handles next: users in rotation, a few messages per loop round.

A user with many busy connections has as many messages handled as one with a single connection, and
whatever else the controller does (heartbeats, answers, new connections) goes on in each round. A
message waits for those of one round, then for at most one of each other user, however much any of
them sends.
"""

import asyncio
from collections import OrderedDict, deque

PER_ROUND = 8
"""Messages that are handled in one round: a millisecond or two."""


class FairMessages:
    """The messages that wait to be handled, by user."""

    def __init__(self, per_round: int = PER_ROUND) -> None:
        self._per_round = self._left = per_round
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """Users in the order of their next messages."""

    async def next_of(self, user: str) -> None:
        """Return when the next message of a user is to be handled: at once where there is room."""
        loop = asyncio.get_running_loop()
        if self._left == self._per_round:
            loop.call_soon(self._begin_round)
        if self._left and not self._waiting:
            self._left -= 1
            return
        message = loop.create_future()
        self._waiting.setdefault(user, deque()).append(message)
        await message

    def _begin_round(self) -> None:
        self._left = self._per_round
        while self._waiting and self._left:
            user, messages = self._waiting.popitem(last=False)
            message = messages.popleft()
            if messages:
                self._waiting[user] = messages  # after all other users
            if not message.done():  # its connection may have ended
                message.set_result(None)
                self._left -= 1
        if self._left < self._per_round:
            asyncio.get_running_loop().call_soon(self._begin_round)
