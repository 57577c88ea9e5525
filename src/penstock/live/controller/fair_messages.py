"""Whose message the controller handles next: users in rotation, one message per round of its loop.

A user with many busy connections has as many messages handled as one with a single connection, and
whatever else the controller does (heartbeats, answers, new connections) goes on in each round. A
message waits for at most one of each other user, however much any of them sends.
"""

import asyncio
from collections import OrderedDict, deque


class FairMessages:
    """The messages that wait to be handled, by user."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """Users in the order of their next messages."""

    async def next_of(self, user: str) -> None:
        """Return when the next message of a user is to be handled."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._let_one_pass)
        message = loop.create_future()
        self._waiting.setdefault(user, deque()).append(message)
        await message

    def _let_one_pass(self) -> None:
        passed = False
        while self._waiting and not passed:
            user, messages = self._waiting.popitem(last=False)
            message = messages.popleft()
            if messages:
                self._waiting[user] = messages  # after all other users
            if not message.done():  # its connection may have ended
                message.set_result(None)
                passed = True
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._let_one_pass)
