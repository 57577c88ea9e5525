"""The controller's HTTP server, with limits on what clients can take.

uvicorn serves in the controller's own loop. What it leaves unbounded is bounded here: the time of a
client that sends or reads slowly, or not at all, and the number of connections. Idle ones give way:
those without a token before those with one, and those of the address that has most of them first. A
new one is given time to ask, so that however many others stand idle or come, an admin gets through.
"""

import asyncio
import contextlib
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.live.protocol.address import BACKLOG, url

HAS_TOKEN = "penstock.has-token"
"""Mark in the scope of a request that had a valid token."""
HEAD_BYTES = 16384
"""Maximum length of a request's line and headers."""
SHUTDOWN_SECONDS = 1
log = logging.getLogger("penstock.controller")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits on the connections of clients."""

    connections: int = 128
    """Limit; beyond it idle connections are closed, unless they have a token or are young."""
    young_seconds: float = 2.0
    """Time in which a new connection may ask before it counts as idle."""
    burst: int = 512
    """Limit with those; beyond it they are closed, too, those with a token last."""
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
        self._until_old: asyncio.TimerHandle | None = None
        self._is_young = True
        self._has_token = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a client, and close idle connections if there are too many."""
        super().connection_made(transport)
        self._set_deadline()
        self._until_old = self.loop.call_later(self._limits.young_seconds, self._grow_old)
        self._make_room()

    @property
    def address(self) -> str:
        """The client's address, or the network that one host of IPv6 has to itself."""
        host = str(self.client[0]) if self.client else ""
        return str(ip_network(f"{host}/64", strict=False)) if ":" in host else host

    def _grow_old(self) -> None:
        self._is_young = False
        if self.is_open:
            self._make_room()

    def _make_room(self) -> None:
        open_ = [c for c in self._all() if c.is_open]
        excess = len(open_) - self._limits.connections
        if excess <= 0:
            return
        held = Counter(c.address for c in open_)
        idle = sorted(
            (c for c in open_ if c.is_idle),
            key=lambda c: (c._has_token, -held[c.address], c._is_young, c.deadline),
        )
        for connection in idle[:excess]:
            spared = connection._is_young or connection._has_token
            if not spared or len(open_) > self._limits.burst:
                connection.transport.abort()
                open_.remove(connection)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release a client's timers."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        for timer in (self._deadline, self._until_old):
            if timer is not None:
                timer.cancel()
        self._on_close()

    def on_response_complete(self) -> None:
        """Give a client time to read its answer, or to send the next request."""
        self._has_token = HAS_TOKEN in self.scope
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
        if self.cycle is not None:
            self.cycle.disconnected = True  # an answer that is under way is not sent any more
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
