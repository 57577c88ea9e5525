"""A connection on which control messages are asked and answered, for programs that can wait."""

import select
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from penstock.errors import InputError
from penstock.live.protocol import messages, site_key
from penstock.live.protocol.errors import FullError
from penstock.live.protocol.site_key import RemoteController, SiteKey
from penstock.live.protocol.tcp import notice_loss

M = TypeVar("M", bound=messages.Message)
LONGEST_LINE = 1 << 20
PATIENCE = 5.0
"""Seconds that an answer may take."""
CONNECTS_WITHIN = 2.0
"""Seconds for another host to answer at all."""
SILENCE = 2.0
"""Seconds without a sign of another host after which a connection is no more: about a lease."""


def line(message: messages.Message) -> bytes:
    """Return a message as it travels."""
    return msgspec.json.encode(message) + b"\n"


def parse(text: bytes, kind: Any) -> Any:
    """Return the message in a line; ConnectionError where it is none of `kind`."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConnectionError(f"what came is no answer: {error}") from error


def _connected(where: Path | RemoteController, patience: float) -> socket.socket:
    if isinstance(where, RemoteController):
        to = (where.address.host, where.address.port)
        connection = socket.create_connection(to, min(CONNECTS_WITHIN, patience))
        notice_loss(connection, SILENCE)
        return connection
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(patience)
        connection.connect(str(where))
    except BaseException:
        connection.close()
        raise
    return connection


class Channel:
    """A connection to a Unix socket, or to another host's controller; a context manager.

    OSError: the other end is not there, or (PermissionError) has another site key.
    """

    def __init__(self, where: Path | RemoteController, *, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._read = b""
        self._socket = _connected(where, patience)
        try:
            self._socket.settimeout(patience)
            if isinstance(where, RemoteController):
                self._prove(where.key)
        except BaseException:
            self._socket.close()
            raise

    def _prove(self, key: SiteKey) -> None:
        """Prove the site key, and have it proven."""
        challenge = self.receive(messages.Challenge, self._patience).nonce
        ours = site_key.nonce()
        self.send(messages.Proof(nonce=ours, proof=key.proof("client", challenge, ours)))
        answer = self.receive(messages.Proof | messages.Failed, self._patience)
        if isinstance(answer, messages.Failed):
            raise PermissionError(answer.error)
        if not key.proves("controller", challenge, ours, answer.proof):
            raise PermissionError("who answers there does not know the site key")

    @property
    def host(self) -> str:
        """This host's address, as the other end sees it."""
        return str(self._socket.getsockname()[0])

    def __enter__(self) -> "Channel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it; nobody may be receiving."""
        self._socket.close()

    def send(self, message: messages.Message) -> None:
        """Send a message that is not answered."""
        self._socket.sendall(line(message))

    def receive(self, kind: Any, seconds: float | None) -> Any:
        """Return the next message; TimeoutError after so many seconds, None: never."""
        until = None if seconds is None else time.monotonic() + seconds
        # The socket's own timeout stays as it is: another thread may be sending.
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        while b"\n" not in self._read:
            if len(self._read) > LONGEST_LINE:
                raise ConnectionError("what came is no answer: the line is too long")
            left = None if until is None else max(until - time.monotonic(), 0.0) * 1000
            if not poll.poll(left):
                raise TimeoutError("no answer came")
            more = self._socket.recv(65536)
            if not more:
                raise ConnectionError("the other end has gone")
            self._read += more
        text, _, self._read = self._read.partition(b"\n")
        return parse(text, kind)

    def ask(self, message: messages.Message, answer: type[M]) -> M:
        """Return the answer to a message; InputError says what could not be done."""
        with suppress(BrokenPipeError):  # it may have said why before it closed
            self.send(message)
        answered = self.receive(messages.Failed | answer, self._patience)
        if isinstance(answered, messages.Failed):
            raise FullError(answered.error) if answered.full else InputError(answered.error)
        return answered  # type: ignore[no-any-return]

    def hang_up(self) -> None:
        """End the connection, so that a thread that receives from it ends too."""
        self._socket.shutdown(socket.SHUT_RDWR)
