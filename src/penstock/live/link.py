"""The controller's connection to an I/O node: asked one thing after the other, answered in order.

The controller connects to I/O nodes of its own host; those on others connect to it.
"""

import asyncio
from collections import deque
from typing import Any

from penstock.live import channel, wire
from penstock.live.deployment import ANSWERS_WITHIN

MOST_OWED = 16
"""Answers that an I/O node may owe before it is asked no more."""


class Link:
    """The controller's end of the connection; who reads from it passes on what is `heard`."""

    def __init__(self, node: wire.Node, writer: asyncio.StreamWriter) -> None:
        self.node = node
        self._writer = writer
        self._owed: deque[asyncio.Future[bytes]] = deque()

    def send(self, message: wire.Message) -> "asyncio.Future[bytes]":
        """Ask at once, and return where the answer will be; OSError: it is not to be asked now."""
        if len(self._owed) >= MOST_OWED:
            raise TimeoutError(f"it owes {MOST_OWED} answers")
        if self._writer.is_closing():
            raise ConnectionResetError("its connection broke off")
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        # An answer that comes too late is dropped when it comes: they come in order.
        self._owed.append(answer)
        self._writer.write(channel.line(message))
        return answer

    async def ask(self, message: wire.Message, kind: Any) -> Any:
        """Return its answer; OSError (TimeoutError too): none comes."""
        answer = self.send(message)
        async with asyncio.timeout(ANSWERS_WITHIN):
            return channel.parse(await answer, wire.Failed | kind)

    def heard(self, text: bytes) -> None:
        """Take an answer in; ConnectionError: nothing was asked."""
        if not self._owed:
            raise ConnectionError("an answer to nothing")
        answer = self._owed.popleft()
        if not answer.done():
            answer.set_result(text)

    def over(self) -> None:
        """The connection is no more."""
        self._writer.close()
        for answer in self._owed:
            if not answer.done():
                answer.set_exception(ConnectionResetError("its connection broke off"))
                answer.exception()  # there may be nobody left to be told
        self._owed.clear()
