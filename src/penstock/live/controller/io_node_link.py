"""The controller's connection to an I/O node: requests, answered in order.

The controller connects to I/O nodes on its own host; those on other hosts connect to it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from penstock.live.deployment.spec import ANSWER_TIMEOUT
from penstock.live.protocol import client, messages

MOST_UNANSWERED = 16
"""Unanswered requests beyond which an I/O node gets no more."""


class Writer(Protocol):
    """The sending half of a connection: a stream's, or a transport."""

    def write(self, data: bytes) -> None:
        """Queue it for sending."""
        ...

    def close(self) -> None:
        """Close it once everything is sent."""
        ...

    def is_closing(self) -> bool:
        """Tell whether it is closed, or closing."""
        ...


class IoNodeLink:
    """The controller's end of the connection; its reader passes answers to `receive`."""

    def __init__(self, node: messages.Node, writer: Writer) -> None:
        self.node = node
        self._writer = writer
        self._unanswered: deque[asyncio.Future[bytes]] = deque()

    def send(self, text: bytes) -> "asyncio.Future[bytes]":
        """Send a request; return a future of its answer. OSError: it cannot be sent now."""
        if len(self._unanswered) >= MOST_UNANSWERED:
            raise TimeoutError(f"it has not answered {MOST_UNANSWERED} requests")
        if self._writer.is_closing():
            raise ConnectionResetError("its connection broke")
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        # A late answer is dropped when it comes: answers come in order.
        self._unanswered.append(answer)
        self._writer.write(text)
        return answer

    async def ask(self, message: messages.Message, kind: Any) -> Any:
        """Send a request and return its answer; OSError (or TimeoutError) without an answer."""
        answer = self.send(client.encode_line(message))
        async with asyncio.timeout(ANSWER_TIMEOUT):
            return client.decode_line(await answer, messages.Failure | kind)

    def receive(self, text: bytes) -> None:
        """Handle an answer; ConnectionError: there was no request."""
        if not self._unanswered:
            raise ConnectionError("an answer without a request")
        answer = self._unanswered.popleft()
        if not answer.done():
            answer.set_result(text)

    def close(self) -> None:
        """Close the connection; unanswered requests fail."""
        self._writer.close()
        for answer in self._unanswered:
            if not answer.done():
                answer.set_exception(ConnectionResetError("its connection broke"))
                answer.exception()  # mark it as retrieved: no task may be waiting for it
        self._unanswered.clear()


class Lines(asyncio.Protocol):
    """Splits a connection into lines; a StreamReader costs several times as much."""

    def __init__(self, receive: Callable[[bytes], None], lost: Callable[[], None]) -> None:
        self._receive = receive
        self._lost = lost
        self._rest = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Pass on complete lines."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        try:
            if len(self._rest) > client.MAX_LINE_BYTES:
                raise ConnectionError("an endless line")
            for text in lines:
                self._receive(text)
        except ConnectionError:
            assert self._transport is not None
            self._transport.abort()

    def connection_lost(self, _: Exception | None) -> None:
        """Report the end."""
        self._lost()
