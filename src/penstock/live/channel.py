"""A connection on which control messages are asked and answered, for programs that can wait."""

import select
import socket
import time
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from penstock.errors import InputError
from penstock.live import wire

M = TypeVar("M", bound=wire.Message)
LONGEST_LINE = 1 << 20
PATIENCE = 5.0
"""Seconds that an answer may take."""


def line(message: wire.Message) -> bytes:
    """Return a message as it travels."""
    return msgspec.json.encode(message) + b"\n"


def parse(text: bytes, kind: Any) -> Any:
    """Return the message in a line; ConnectionError where it is none of `kind`."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConnectionError(f"what came is no answer: {error}") from error


class Channel:
    """A connection to a Unix socket; a context manager. OSError: the other end is not there."""

    def __init__(self, path: Path, *, patience: float = PATIENCE) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._patience = patience
        self._read = b""
        try:
            self._socket.settimeout(patience)
            self._socket.connect(str(path))
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> "Channel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it; nobody may be receiving."""
        self._socket.close()

    def send(self, message: wire.Message) -> None:
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

    def ask(self, message: wire.Message, answer: type[M]) -> M:
        """Return the answer to a message; InputError says what could not be done."""
        self.send(message)
        answered = self.receive(wire.Failed | answer, self._patience)
        if isinstance(answered, wire.Failed):
            raise InputError(answered.error)
        return answered  # type: ignore[no-any-return]

    def hang_up(self) -> None:
        """End the connection, so that a thread that receives from it ends too."""
        self._socket.shutdown(socket.SHUT_RDWR)
