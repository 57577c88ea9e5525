"""The controller's HTTP server: what a client may take of it.

uvicorn serves in the controller's own loop. What it leaves unbounded is bounded here: the time of a
client that sends or reads slowly, or nothing at all, and the number of connections, of which those
that ask nothing give way to new ones.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.live.protocol.address import BACKLOG, url

CONNECTIONS = 128
"""At most so many; beyond them the one that has been idle for longest is cut off."""
EXCHANGE_SECONDS = 15.0
"""From a connection's begin, or its last answer, to its next answer."""
KEPT_SECONDS = 5
UNREAD_BYTES = 1 << 25
"""Of all answers that clients have not read; beyond them the longest answer is dropped."""
HEAD_BYTES = 16384
"""Bytes of a request's line and headers."""
ENDS_WITHIN = 1
log = logging.getLogger("penstock.controller")


class Connection(H11Protocol):
    """One client, which has to come to the point."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a client in, for one that asks nothing if there are too many."""
        super().connection_made(transport)
        self._expect()
        there = [c for c in self._all() if c.is_there]
        if len(there) > CONNECTIONS:
            # With all others at work this is the only idle one, and goes.
            min((c for c in there if c.is_idle), key=lambda c: c.expected).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a client."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        if self._deadline is not None:
            self._deadline.cancel()

    def on_response_complete(self) -> None:
        """Give a client time to read its answer, or to ask for the next."""
        if self.is_there:
            self._expect()
        super().on_response_complete()
        unread = {c: c.transport.get_write_buffer_size() for c in self._all() if c.is_there}
        while sum(unread.values()) > UNREAD_BYTES:
            longest = max(unread, key=unread.__getitem__)
            del unread[longest]
            longest.transport.abort()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse what is no HTTP, or too long, as the API refuses."""
        text = b'{"error":"this is no HTTP request, or its head is too long","hint":'
        text += b'"GET /openapi.json has the requests that are understood"}'
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
            self.transport.abort()  # an answer to what came before is under way

    @property
    def is_there(self) -> bool:
        """Whether this client has not been sent away."""
        return not self.transport.is_closing()

    @property
    def is_idle(self) -> bool:
        """Whether no request of this client is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def expected(self) -> float:
        """When the next answer must have been given."""
        assert self._deadline is not None
        return self._deadline.when()

    def _all(self) -> Iterator["Connection"]:
        """Return all connections, this one too."""
        return (c for c in self.connections if isinstance(c, Connection))

    def _expect(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(EXCHANGE_SECONDS, self.transport.abort)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the controller."""
        yield


@asynccontextmanager
async def serving(app: ASGIApp, listener: socket.socket) -> AsyncIterator[None]:
    """Serve until the block ends; the socket is closed then."""
    settings: dict[str, Any] = {
        "http": Connection,
        "ws": "none",
        "lifespan": "off",
        "log_config": None,
        "log_level": "error",  # a client cannot fill the log
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
        "backlog": BACKLOG,
        "timeout_keep_alive": KEPT_SECONDS,
        "timeout_graceful_shutdown": ENDS_WITHIN,
        # Those that were cut off are still counted while a burst of new ones is taken in.
        "limit_concurrency": 2 * CONNECTIONS + BACKLOG,
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
            async with asyncio.timeout(ENDS_WITHIN + 2.0):
                await asyncio.gather(task, return_exceptions=True)
        except TimeoutError:
            log.warning("the HTTP API did not end in time")
        for connection in list(server.server_state.connections):
            if isinstance(connection, Connection):
                connection.transport.abort()
        with contextlib.suppress(OSError):
            listener.close()
