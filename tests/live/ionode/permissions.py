"""A client that asks an I/O node of its host for permission: one connection, and its page."""

import mmap
import os
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from limits import HANG
from live.ionode.frames import GoneError

MAGIC = 0x31504E50
ASK, GIVE_BACK = 1, 2
READ, WRITE, SYNC = range(3)
METERED, UNMANAGED = 1, 2
HELLO = struct.Struct("<II64s")
WELCOME = struct.Struct("<IIQ")
MESSAGE = struct.Struct("<IIIIQQQ")
PERMITS, CALLS_KEPT = 64, 1024
ANSWER = struct.Struct("<IIQQIII")
CALL = struct.Struct("<QQQII")
IN_CALL, CALLS_MADE, CALLS = 68, 72, 128
PERMIT_BYTES = CALLS + CALLS_KEPT * CALL.size


@dataclass(frozen=True)
class Credit:
    """What an I/O node answered."""

    terms: int
    bytes: int
    until: int  # nanoseconds of CLOCK_MONOTONIC
    calls: int


class Caller:
    """A process at an I/O node; a context manager."""

    def __init__(self, path: Path, *, job: bytes = b"job", magic: int = MAGIC) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(HANG)
        self.page: mmap.mmap | None = None
        self.page_descriptor = -1
        self.node = self.number = 0
        try:
            self.socket.connect(str(path))
            self._greet(job, magic)
        except BaseException:
            self.close()
            raise

    def _greet(self, job: bytes, magic: int) -> None:
        try:
            self.socket.send(HELLO.pack(magic, os.getpid(), job))
            answer, descriptors, _, _ = socket.recv_fds(self.socket, WELCOME.size, 1)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise GoneError from error
        if not answer:
            raise GoneError
        welcomed, _, self.node = WELCOME.unpack(answer)
        assert welcomed == MAGIC
        self.page = mmap.mmap(descriptors[0], PERMITS * PERMIT_BYTES)
        self.page_descriptor = descriptors[0]

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up, as a process that ends does."""
        self.socket.close()
        if self.page_descriptor >= 0:
            os.close(self.page_descriptor)
            self.page_descriptor = -1

    @property
    def has_hung_up(self) -> bool:
        """Whether the I/O node has; waits for it."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def send(
        self,
        message: int,
        *,
        permit: int = 0,
        kind: int = WRITE,
        file: int = 1,
        offset: int = 0,
        size: int = 0,
        number: int | None = None,
    ) -> None:
        """Send any message."""
        number = self.number if number is None else number
        data = MESSAGE.pack(message, permit, number, kind, file, offset, size)
        try:
            self.socket.send(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise GoneError from error

    def request(self, size: int, *, permit: int = 0, kind: int = WRITE, offset: int = 0) -> None:
        """Ask for a credit, and do not wait for it."""
        self.number += 1
        self.send(ASK, permit=permit, kind=kind, offset=offset, size=size)

    def answer(self, *, permit: int = 0) -> Credit | None:
        """Return the answer to the last question, if there is one."""
        assert self.page is not None
        number, terms, size, until, calls, _, _ = ANSWER.unpack_from(
            self.page, permit * PERMIT_BYTES
        )
        return Credit(terms, size, until, calls) if number == self.number else None

    def ask(self, size: int, *, permit: int = 0, kind: int = WRITE, offset: int = 0) -> Credit:
        """Ask for a credit for a call of that many bytes."""
        self.request(size, permit=permit, kind=kind, offset=offset)
        deadline = time.monotonic() + HANG
        while (answer := self.answer(permit=permit)) is None:
            assert time.monotonic() < deadline, "no answer"
            time.sleep(0.0005)
        return answer

    def is_recalled(self, *, permit: int = 0) -> bool:
        """Whether the credit must not be used any more."""
        assert self.page is not None
        return bool(ANSWER.unpack_from(self.page, permit * PERMIT_BYTES)[5] == self.number)

    def set_in_call(self, number: int, *, permit: int = 0) -> None:
        """Say that a call is under way under a question's number, or none (0)."""
        assert self.page is not None
        struct.pack_into("<I", self.page, permit * PERMIT_BYTES + IN_CALL, number)

    def called(
        self,
        size: int,
        *,
        offset: int = 0,
        kind: int = WRITE,
        file: int = 1,
        seconds: float = 0.0,
        permit: int = 0,
    ) -> None:
        """Put a call that was made into the page."""
        assert self.page is not None
        base = permit * PERMIT_BYTES
        (made,) = struct.unpack_from("<Q", self.page, base + CALLS_MADE)
        how = int(seconds * 1e9 / 64) * 4 + kind
        entry = (file, offset, time.monotonic_ns(), size, how)
        CALL.pack_into(self.page, base + CALLS + made % CALLS_KEPT * CALL.size, *entry)
        struct.pack_into("<Q", self.page, base + CALLS_MADE, made + 1)

    def give_back(self, *, permit: int = 0) -> None:
        """Give the credit back."""
        self.send(GIVE_BACK, permit=permit)

    def make(self, size: int, *, offset: int = 0, kind: int = WRITE, file: int = 1) -> Credit:
        """Ask, and say that the call was made."""
        credit = self.ask(size, kind=kind, offset=offset)
        self.called(size, offset=offset, kind=kind, file=file)
        return credit
