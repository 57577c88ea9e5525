"""The controller's connection to an I/O node: asked one thing after the other, answered in order.

The controller connects to I/O nodes of its own host; those on others connect to it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from penstock.live.deployment.spec import ANSWER_TIMEOUT
from penstock.live.protocol import client, messages

MOST_OWED = 16
"""Answers that an I/O node may owe before it is asked no more."""


class Writer(Protocol):
    """The sending half of a connection: a stream's, or a transport."""

    def write(self, data: bytes) -> None:
        """Send it by and by."""
        ...

    def close(self) -> None:
        """End it once all is sent."""
        ...

    def is_closing(self) -> bool:
        """Say whether it has ended, or will."""
        ...


class IoNodeLink:
    """The controller's end of the connection; who reads from it passes on what is `heard`."""

    def __init__(self, node: messages.Node, writer: Writer) -> None:
        self.node = node
        self._writer = writer
        self._owed: deque[asyncio.Future[bytes]] = deque()

    def send(self, text: bytes) -> "asyncio.Future[bytes]":
        """Ask at once, and return where the answer will be; OSError: it is not to be asked now."""
        if len(self._owed) >= MOST_OWED:
            raise TimeoutError(f"it owes {MOST_OWED} answers")
        if self._writer.is_closing():
            raise ConnectionResetError("its connection broke off")
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        # An answer that comes too late is dropped when it comes: they come in order.
        self._owed.append(answer)
        self._writer.write(text)
        return answer

    async def ask(self, message: messages.Message, kind: Any) -> Any:
        """Return its answer; OSError (TimeoutError too): none comes."""
        answer = self.send(client.encode_line(message))
        async with asyncio.timeout(ANSWER_TIMEOUT):
            return client.decode_line(await answer, messages.Failure | kind)

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


class Lines(asyncio.Protocol):
    """Lines of a connection, as they come: a stream's reader costs several times as much."""

    def __init__(self, heard: Callable[[bytes], None], over: Callable[[], None]) -> None:
        self._heard = heard
        self._over = over
        self._rest = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take note of what it is."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Pass on the lines that are whole."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        try:
            if len(self._rest) > client.MAX_LINE_BYTES:
                raise ConnectionError("a line without end")
            for text in lines:
                self._heard(text)
        except ConnectionError:
            assert self._transport is not None
            self._transport.abort()

    def connection_lost(self, _: Exception | None) -> None:
        """Say that it is over."""
        self._over()
