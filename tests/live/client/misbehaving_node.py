"""An I/O node for tests of the client library that can be told to misbehave, request by request.

The real one does not stall, lie or hang up when asked to; this one does exactly that. It carries
data in the wire format of native/common/wire.h, one thread per connection.
"""

import itertools
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
    MAGIC,
    NONCE_BYTES,
    OPEN,
    PROVE,
    READ,
    REPLY,
    REQUEST,
    TOKEN,
    WRITE,
    proof,
)

from penstock.live.protocol.messages import Node

Before = Callable[[int, int, int], int | None]
"""Called with operation, offset and bytes before each request; what it returns is the result."""


class OddNode:
    """Serves files below a root until closed; a context manager."""

    boot = 1

    def __init__(self, root: Path, *, id: int = 7, token: bytes = TOKEN) -> None:
        self.before: Before = lambda operation, offset, count: None
        self.requests: list[tuple[int, int, int]] = []
        self._root = root
        self._token = token
        self._files: dict[int, int] = {}
        self._handles = itertools.count()
        self._connections: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        host, port = self._listener.getsockname()
        self.node = Node(number=0, id=id, address=host, transport="tcp", port=port)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.die()

    def die(self) -> None:
        """Go as a killed process goes: every connection hangs up, the port is dead."""
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
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while self._answer(connection):
                pass

    def _answer(self, connection: socket.socket) -> bool:
        data = _receive(connection, REQUEST.size)
        if len(data) < REQUEST.size:
            return False
        magic, operation, number, file, offset, count, flags = REQUEST.unpack(data)
        assert magic == MAGIC
        follows = b""
        if operation != PROVE:  # one greeting is one request
            self.requests.append((operation, offset, count))
        if operation in (HELLO, PROVE, OPEN, WRITE):
            follows = _receive(connection, count)
        assert operation != HELLO or count == INTRODUCTION.size
        result = None if operation == PROVE else self.before(operation, offset, count)
        if operation == WRITE and result is not None and result > 0:
            follows, result = follows[:result], None
        back = b""
        if result is None:
            try:
                if operation == OPEN:
                    result = self._open(follows, offset, flags)
                elif operation == READ:
                    back = os.pread(self._files.get(file, -1), count, offset)
                    result = len(back)
                else:
                    result = self._call(operation, file, offset, follows)
            except OSError as error:
                result = -(error.errno or 5)
        greets = operation == HELLO
        reply = REPLY.pack(MAGIC, number, result, greets * self.boot, greets * self.node.id)
        if greets:
            back = self.challenge(data + follows, reply)
        connection.sendall(reply + back)
        return True

    def challenge(self, hello: bytes, reply: bytes) -> bytes:
        """Return what follows the reply to a greeting."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + proof(b"node", token=self._token, hello=hello, reply=reply, nonce=nonce)

    def _open(self, path: bytes, inode: int, flags: int) -> int:
        # Without O_DIRECT: what it receives is not aligned.
        descriptor = os.open(os.fsencode(self._root) + b"/" + path, flags & ~os.O_DIRECT)
        assert os.fstat(descriptor).st_ino == inode
        handle = next(self._handles)
        self._files[handle] = descriptor
        return handle

    def _call(self, operation: int, file: int, offset: int, data: bytes) -> int:
        if operation == WRITE:
            return os.pwrite(self._files.get(file, -1), data, offset)
        if operation in (FSYNC, FDATASYNC):
            os.fsync(self._files.get(file, -1))
        if operation == CLOSE:
            os.close(self._files.pop(file, -1))
        return 0


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size and (part := connection.recv(size - len(data))):
        data += part
    return bytes(data)
