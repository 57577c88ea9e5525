"""The blocking end of a control connection: send a message, receive the answer.

Verbs, agents and I/O nodes use it; the controller serves the other end with asyncio.
"""

import errno
import os
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from penstock.errors import InputError
from penstock.live.protocol import messages, site_key
from penstock.live.protocol.seal import Seals
from penstock.live.protocol.site_key import Key, RemoteController
from penstock.live.protocol.users import peer_credentials

M = TypeVar("M", bound=messages.Message)
MAX_LINE_BYTES = 1 << 20
ANSWER_TIMEOUT = 5.0
"""Seconds that an answer may take."""
CONNECT_TIMEOUT = 2.0
"""Seconds that a TCP connection to another host may take."""
LOSS_TIMEOUT = 2.0
"""Seconds without an acknowledgement after which a TCP connection is lost: about a lease."""
_FULL = 0.01
"""Seconds until the next try to connect to a socket whose queue is full."""


class FullError(InputError):
    """The controller has no room for another connection, or for another job of this user."""


def encode_line(message: messages.Message) -> bytes:
    """Encode a message as one line of JSON."""
    return msgspec.json.encode(message) + b"\n"


def decode_line(line: bytes, kind: Any) -> Any:
    """Decode a line of JSON to a message of type `kind`, or raise ConnectionError."""
    try:
        return messages.decode(line, kind)
    except msgspec.DecodeError as error:
        raise ConnectionError(f"invalid answer: {error}") from error


def set_loss_timeout(connection: socket.socket, seconds: float) -> None:
    """Let a TCP connection fail once the other host has not acknowledged for about `seconds`.

    The user timeout covers unacknowledged data; keep-alive probes cover an idle connection.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, max(round(seconds), 1))
    milliseconds = max(round(seconds * 1000), 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)


def _connect(address: Path | RemoteController, timeout: float) -> socket.socket:
    if isinstance(address, RemoteController):
        target = (address.address.host, address.address.port)
        connection = socket.create_connection(target, min(CONNECT_TIMEOUT, timeout))
        set_loss_timeout(connection, LOSS_TIMEOUT)
        return connection
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    deadline = time.monotonic() + timeout
    try:
        connection.settimeout(timeout)
        while (error := connection.connect_ex(str(address))) == errno.EAGAIN:
            if time.monotonic() >= deadline:
                raise TimeoutError("it accepts no connection")
            time.sleep(_FULL)  # its queue of connections is full
        if error:
            raise OSError(error, os.strerror(error))
    except BaseException:
        connection.close()
        raise
    return connection


class ControlConnection:
    """A connection to a control socket, or to the controller of another host; a context manager.

    Raises OSError if nothing listens there, PermissionError if the site keys differ.
    """

    def __init__(
        self,
        address: Path | RemoteController,
        *,
        timeout: float = ANSWER_TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout = timeout
        self._clock = clock
        self._buffer = b""
        self._seals: Seals | None = None
        self._socket = _connect(address, timeout)
        try:
            self._socket.settimeout(timeout)
            if isinstance(address, RemoteController):
                self._authenticate(address.key)
        except BaseException:
            self._socket.close()
            raise

    def _authenticate(self, key: Key) -> None:
        """Prove a key to the controller, and check that the controller has it too."""
        challenge = self.receive(messages.Challenge, self._timeout).nonce
        nonce = site_key.nonce()
        proof = key.proof("client", challenge, nonce)
        self.send(messages.Proof(nonce=nonce, proof=proof, user=key.user))
        answer = self.receive(messages.Proof | messages.Failure, self._timeout)
        if isinstance(answer, messages.Failure):
            raise PermissionError(answer.error)
        if not key.proves("controller", challenge, nonce, answer.proof):
            raise PermissionError("the controller at this address does not have the site key")
        self._seals = key.seals("client", challenge, nonce)

    @property
    def uid(self) -> int | None:
        """The user of the other end, according to the kernel; None: it is on another host."""
        if self._socket.family != socket.AF_UNIX:
            return None
        return peer_credentials(self._socket)[1]

    @property
    def host(self) -> str:
        """This host's address, as the other end sees it."""
        return str(self._socket.getsockname()[0])

    def __enter__(self) -> "ControlConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; no other thread may be receiving."""
        self._socket.close()

    def send(self, message: messages.Message) -> None:
        """Send a message that has no answer."""
        line = encode_line(message)
        self._socket.sendall(line if self._seals is None else self._seals.sent.seal(line))

    def receive(self, kind: Any, seconds: float | None) -> Any:
        """Return the next message, or raise TimeoutError after `seconds`; None waits forever.

        TamperedError: it is not what the controller of another host sent next.
        """
        deadline = None if seconds is None else self._clock() + seconds
        # The socket's own timeout stays as it is: another thread may be sending.
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        while b"\n" not in self._buffer:
            if len(self._buffer) > MAX_LINE_BYTES:
                raise ConnectionError("invalid answer: the line is too long")
            left = None if deadline is None else max(deadline - self._clock(), 0.0) * 1000
            if not poll.poll(left):
                raise TimeoutError("no answer came")
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("the other end closed the connection")
            self._buffer += data
        line, end, self._buffer = self._buffer.partition(b"\n")
        if self._seals is not None:
            line = self._seals.received.open(line + end)
        return decode_line(line, kind)

    def ask(self, message: messages.Message, answer: type[M]) -> M:
        """Send a message and return its answer; a Failure is raised as InputError."""
        with suppress(BrokenPipeError):  # the other end may have sent the reason before it closed
            self.send(message)
        result = self.receive(messages.Failure | answer, self._timeout)
        if isinstance(result, messages.Failure):
            raise FullError(result.error) if result.full else InputError(result.error)
        return result  # type: ignore[no-any-return]

    def shut_down(self) -> None:
        """End the connection, so that a thread that receives from it returns."""
        self._socket.shutdown(socket.SHUT_RDWR)
