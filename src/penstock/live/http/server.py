"""The controller's HTTP server, with limits on what clients can take.

uvicorn serves in the controller's own loop. What it leaves unbounded is bounded here: the time of a
client that sends or reads slowly, or not at all, and the number of connections, of which idle ones
give way to new ones.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.live.protocol.address import BACKLOG, url

HEAD_BYTES = 16384
"""Maximum length of a request's line and headers."""
SHUTDOWN_SECONDS = 1
log = logging.getLogger("penstock.controller")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits on the connections of clients."""

    connections: int = 128
    """Limit; beyond it the connection that has been idle longest is closed."""
    exchange_seconds: float = 15.0
    """Time limit from a connection's start, or its last answer, to its next answer."""
    keep_alive_seconds: int = 5
    unread_bytes: int = 1 << 25
    """Limit on all answers that clients have not read; beyond it the longest is dropped."""


class Connection(H11Protocol):
    """One client."""

    def __init__(
        self, *args: Any, limits: ConnectionLimits, on_close: Callable[[], None], **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._limits, self._on_close = limits, on_close
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a client, and close the longest idle connection if there are too many."""
        super().connection_made(transport)
        self._set_deadline()
        open_ = [c for c in self._all() if c.is_open]
        if len(open_) > self._limits.connections:
            # If all others are busy, this new one is the only idle one.
            min((c for c in open_ if c.is_idle), key=lambda c: c.deadline).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release a client's timers."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        if self._deadline is not None:
            self._deadline.cancel()
        self._on_close()

    def on_response_complete(self) -> None:
        """Give a client time to read its answer, or to send the next request."""
        if self.is_open:
            self._set_deadline()
        super().on_response_complete()
        unread = {c: c.transport.get_write_buffer_size() for c in self._all() if c.is_open}
        while sum(unread.values()) > self._limits.unread_bytes:
            longest = max(unread, key=unread.__getitem__)
            del unread[longest]
            longest.transport.abort()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Answer what is not HTTP, or too long, with JSON like every other error."""
        text = b'{"error":"not an HTTP request, or its head is too long","hint":'
        text += b'"GET /openapi.json documents the requests"}'
        headers = [("content-type", "application/json"), ("connection", "close")]
        headers.append(("content-length", str(len(text))))
        try:
            for event in (
                h11.Response(status_code=400, headers=headers, reason="Bad Request"),
                h11.Data(data=text),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()
        except h11.LocalProtocolError:
            self.transport.abort()  # the answer to an earlier request is being sent

    @property
    def is_open(self) -> bool:
        """Whether the connection has not been closed from this side."""
        return not self.transport.is_closing()

    @property
    def is_idle(self) -> bool:
        """Whether no request of this client is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def deadline(self) -> float:
        """When the next answer must have been given."""
        assert self._deadline is not None
        return self._deadline.when()

    def _all(self) -> Iterator["Connection"]:
        """Return all connections, including this one."""
        return (c for c in self.connections if isinstance(c, Connection))

    def _set_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(self._limits.exchange_seconds, self.transport.abort)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the controller."""
        yield


def _ignore() -> None:
    pass


@asynccontextmanager
async def serving(
    app: ASGIApp,
    listener: socket.socket,
    limits: ConnectionLimits | None = None,
    on_close: Callable[[], None] = _ignore,
) -> AsyncIterator[None]:
    """Serve until the block ends, then close the socket; `on_close` follows each connection."""
    limits = limits or ConnectionLimits()
    settings: dict[str, Any] = {
        "http": partial(Connection, limits=limits, on_close=on_close),
        "ws": "none",
        "lifespan": "off",
        "log_config": None,
        "log_level": "error",  # a client cannot fill the log
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
        "backlog": BACKLOG,
        "timeout_keep_alive": limits.keep_alive_seconds,
        "timeout_graceful_shutdown": SHUTDOWN_SECONDS,
        # Closed connections still count while a burst of new ones is accepted.
        "limit_concurrency": 2 * limits.connections + BACKLOG,
        "h11_max_incomplete_event_size": HEAD_BYTES,
    }
    server = _Server(uvicorn.Config(app, **settings))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    log.info("HTTP API at %s", url(listener))
    try:
        yield
    finally:
        server.should_exit = True
        try:
            async with asyncio.timeout(SHUTDOWN_SECONDS + 2.0):
                await asyncio.gather(task, return_exceptions=True)
        except TimeoutError:
            log.warning("the HTTP server did not stop in time")
        for connection in list(server.server_state.connections):
            if isinstance(connection, Connection):
                connection.transport.abort()
        with contextlib.suppress(OSError):
            listener.close()
