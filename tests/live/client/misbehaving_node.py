"""An I/O node for tests of the client library that can be told to misbehave, request by request.

The real one does not stall, lie or hang up when asked to; this one does exactly that. It speaks the
wire format of native/common/wire.h on a Unix socket, one thread a connection.
"""

import array
import itertools
import mmap
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from live.ionode.frames import (
    CLOSE,
    FDATASYNC,
    FSYNC,
    HELLO,
    INTRODUCTION,
    LARGEST,
    MAGIC,
    MAILBOX,
    MAILBOX_BYTES,
    OPEN,
    READ,
    REPLY,
    REQUEST,
    WRITE,
)

from penstock.live.protocol.messages import Node
from penstock.live.protocol.shared_page import futex_wake

Before = Callable[[int, int, int], int | None]
"""Called with operation, offset and bytes before each request; what it returns is the result."""


class OddNode:
    """Serves until closed; a context manager."""

    def __init__(self, path: Path, *, id: int = 7) -> None:
        self.node = Node(number=0, id=id, address=str(path))
        self.before: Before = lambda operation, offset, count: None
        self.requests: list[tuple[int, int, int]] = []
        self._files: dict[int, int] = {}
        self._handles = itertools.count()
        self._connections: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.die()

    def die(self) -> None:
        """Go as a killed process goes: every connection hangs up, the socket is dead."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def count(self, operation: int) -> int:
        return sum(request[0] == operation for request in self.requests)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        window: mmap.mmap | None = None
        while True:
            data, descriptors = _receive(connection)
            if len(data) < REQUEST.size:
                return
            magic, operation, number, file, offset, count, flags = REQUEST.unpack(data)
            assert magic == MAGIC
            self.requests.append((operation, offset, count))
            if operation == HELLO:
                connection.recv(INTRODUCTION.size, socket.MSG_WAITALL)
                window = mmap.mmap(descriptors[0], LARGEST + MAILBOX_BYTES)
            result = self.before(operation, offset, count)
            if operation == WRITE and (result is None or result > 0):
                count, result = result or count, None
            if result is None:
                try:
                    if operation == OPEN:
                        result = self._open(descriptors[0], flags)
                    else:
                        view = memoryview(window or b"")[:count]
                        result = _move(operation, self._files.get(file, -1), offset, view)
                    if operation == CLOSE:
                        os.close(self._files.pop(file))
                except OSError as error:
                    result = -(error.errno or 5)
            for descriptor in descriptors:
                os.close(descriptor)
            reply = REPLY.pack(MAGIC, number, result, 1, self.node.id)
            if operation == HELLO:
                connection.sendall(reply)
            else:
                _post(window, number, reply)

    def _open(self, descriptor: int, flags: int) -> int:
        handle = next(self._handles)
        self._files[handle] = os.open(f"/proc/self/fd/{descriptor}", flags)
        return handle


def _move(operation: int, file: int, offset: int, window: "memoryview[int]") -> int:
    if operation == WRITE:
        return os.pwrite(file, window, offset)
    if operation == READ:
        return os.preadv(file, [window], offset)
    if operation in (FSYNC, FDATASYNC):
        os.fsync(file)
    return 0


def _post(window: mmap.mmap | None, number: int, reply: bytes) -> None:
    assert window is not None
    window[LARGEST + MAILBOX.size : LARGEST + MAILBOX.size + len(reply)] = reply
    MAILBOX.pack_into(window, LARGEST, number, 0)
    futex_wake(window, LARGEST)


def _receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    data, ancillary, _, _ = connection.recvmsg(REQUEST.size, socket.CMSG_SPACE(4))
    descriptors = array.array("i")
    for _, kind, payload in ancillary:
        if kind == socket.SCM_RIGHTS:
            descriptors.frombytes(payload[: len(payload) - len(payload) % 4])
    return data, list(descriptors)
