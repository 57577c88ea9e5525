"""A client of the wire format, as small as can be: one connection, one request at a time."""

import fcntl
import mmap
import os
import select
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from limits import HANG

MAGIC, LARGEST = 0x31574E50, 4 << 20
HELLO, OPEN, WRITE, READ, FSYNC, FDATASYNC, CLOSE = range(1, 8)
REQUEST = struct.Struct("<IIIIQII")
INTRODUCTION = struct.Struct("<QQII64s32s")
REPLY = struct.Struct("<IIqQQ")
MAILBOX, MAILBOX_BYTES = struct.Struct("<II"), 4096
PATIENCE = HANG


@dataclass(frozen=True)
class Reply:
    number: int
    result: int
    boot: int
    node: int


class GoneError(Exception):
    """The I/O node closed the connection."""


class Client:
    """A connection to an I/O node; `window` is 0 over TCP."""

    def __init__(
        self,
        address: Path | tuple[str, int],
        *,
        session: int = 1,
        job: bytes = b"job",
        window: int = 1 << 20,
        token: bytes = bytes(32),
        hello: bool = True,
        buffer: int = 0,
    ) -> None:
        self.tcp = isinstance(address, tuple)
        family = socket.AF_INET if self.tcp else socket.AF_UNIX
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.connect(address if isinstance(address, tuple) else str(address))
        self.number = self.collected = 0
        self.job, self.session, self.token = job, session, token
        self.bytes = 0 if self.tcp else window
        self.memory: mmap.mmap | None = None
        self.greeting: Reply | None = None
        if hello:
            try:
                self.greeting = self.hello()
            except BaseException:
                self.close()  # else the collector complains of it in some later test
                raise

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def hello(self, *, sealed: bool = True, size: int | None = None) -> Reply:
        introduction = INTRODUCTION.pack(
            self.session, 7, os.getpid(), self.bytes, self.job, self.token
        )
        if self.tcp:
            return self.ask(HELLO, length=len(introduction), follows=introduction)
        memory = os.memfd_create("window", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(memory, self.bytes + MAILBOX_BYTES if size is None else size)
            if sealed:
                fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
            if os.fstat(memory).st_size:
                self.memory = mmap.mmap(memory, os.fstat(memory).st_size)
            return self.ask(
                HELLO, length=len(introduction), follows=introduction, descriptors=[memory]
            )
        finally:
            os.close(memory)

    def send(
        self,
        operation: int,
        *,
        file: int = 0,
        offset: int = 0,
        length: int = 0,
        flags: int = 0,
        follows: bytes = b"",
        descriptors: list[int] | None = None,
        magic: int = MAGIC,
    ) -> None:
        self.number += 1
        frame = REQUEST.pack(magic, operation, self.number, file, offset, length, flags) + follows
        if descriptors:
            sent = socket.send_fds(self.socket, [frame], descriptors)
            assert sent == len(frame)
        else:
            self.socket.sendall(frame)

    def receive(self, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            try:
                part = self.socket.recv(length - len(parts))
            except ConnectionResetError:
                part = b""
            if not part:
                self.close()
                raise GoneError
            parts += part
        return bytes(parts)

    def collect(self) -> bytes:
        """Return the reply from the mailbox; the socket tells of a hang-up."""
        assert self.memory is not None
        deadline = time.monotonic() + PATIENCE
        hung_up = False
        hang_up = select.poll()
        hang_up.register(self.socket, select.POLLRDHUP)
        while (
            self.collected == self.number
            or MAILBOX.unpack_from(self.memory, self.bytes)[0] != self.number
        ):
            if hung_up:
                self.close()
                raise GoneError
            if time.monotonic() > deadline:
                raise TimeoutError
            hung_up = bool(hang_up.poll(1))
        self.collected = self.number
        return self.memory[self.bytes + MAILBOX.size : self.bytes + MAILBOX.size + REPLY.size]

    def reply(self) -> Reply:
        posted = self.greeting is not None and not self.tcp
        data = self.collect() if posted else self.receive(REPLY.size)
        magic, number, result, boot, node = REPLY.unpack(data)
        assert magic == MAGIC
        assert number == self.number
        return Reply(number, result, boot, node)

    def ask(self, operation: int, **fields: object) -> Reply:
        try:
            self.send(operation, **fields)  # type: ignore[arg-type]
        except (BrokenPipeError, ConnectionResetError) as error:
            self.close()
            raise GoneError from error
        return self.reply()

    def open(self, path: Path, flags: int = os.O_RDWR, *, opened: int | None = None) -> int:
        """Return a handle, or the error number, negated; over TCP `path` is below root 0."""
        if self.tcp:
            name = os.fsencode(path)
            return self.ask(
                OPEN, offset=opened or 0, length=len(name), flags=flags, follows=name
            ).result
        descriptor = os.open(path, flags if opened is None else opened)
        try:
            return self.ask(OPEN, flags=flags, descriptors=[descriptor]).result
        finally:
            os.close(descriptor)

    def put(self, data: bytes) -> None:
        assert self.memory is not None
        self.memory[: len(data)] = data

    def write(self, file: int, data: bytes, offset: int = 0, flags: int = 0) -> int:
        if self.tcp:
            follows = data
        else:
            self.put(data)
            follows = b""
        return self.ask(
            WRITE, file=file, offset=offset, length=len(data), flags=flags, follows=follows
        ).result

    def read(self, file: int, length: int, offset: int = 0) -> bytes | int:
        result = self.ask(READ, file=file, offset=offset, length=length).result
        if result < 0:
            return result
        if self.tcp:
            return self.receive(result)
        assert self.memory is not None
        return self.memory[:result]
