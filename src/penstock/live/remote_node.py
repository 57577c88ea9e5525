"""An I/O node on another host, asked on the connection that it keeps to the controller."""

import asyncio
from collections import deque
from typing import Any

from penstock.live import channel, wire
from penstock.live.deployment import ANSWERS_WITHIN

MOST_OWED = 16
"""Answers that an I/O node may owe before it is asked no more."""


class RemoteLink:
    """The controller's end of the connection that an I/O node keeps."""

    def __init__(self, node: wire.Node, writer: asyncio.StreamWriter) -> None:
        self.node = node
        self._writer = writer
        self._owed: deque[asyncio.Future[bytes]] = deque()

    async def ask(self, message: wire.Message, kind: Any) -> Any:
        """Return its answer; OSError (TimeoutError too): none comes."""
        if len(self._owed) >= MOST_OWED:
            raise TimeoutError(f"it owes {MOST_OWED} answers")
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        # An answer that comes too late is dropped when it comes: they come in order.
        self._owed.append(answer)
        self._writer.write(channel.line(message))
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
        for answer in self._owed:
            if not answer.done():
                answer.set_exception(ConnectionResetError("its connection broke off"))
