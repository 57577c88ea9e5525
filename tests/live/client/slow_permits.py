"""An I/O node of the host that permits when it is told to, and lets clients queue until then."""

import mmap
import os
import socket
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from live.ionode.permissions import (
    ANSWER,
    ASK,
    GIVE_BACK,
    HELLO,
    IN_CALL,
    MAGIC,
    MESSAGE,
    PERMIT_BYTES,
    PERMITS,
    WELCOME,
)

from penstock.live.protocol.messages import Node

HEARTBEAT = 32
FOREVER = 1 << 62


class SlowPermits:
    """Serves until closed; a context manager. `permits` says whether questions are answered."""

    def __init__(self, path: Path, *, calls: int = 1, permits: bool = True) -> None:
        self.node = Node(number=0, id=9, address=str(path))
        self.calls, self.permits = calls, permits
        self.asked = self.given_back = 0
        self._pages: list[mmap.mmap] = []
        self._queued: list[tuple[mmap.mmap, int, int, int]] = []
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._done = threading.Event()
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._accept, self._beat)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def in_call(self) -> list[int]:
        """Return the marks of calls that clients say are under way."""
        places = (PERMIT_BYTES * k + IN_CALL for k in range(PERMITS))
        words = [page[at : at + 4] for at in places for page in self._pages]
        return [mark for word in words if (mark := struct.unpack("<I", word)[0]) != 0]

    def _beat(self) -> None:
        while not self._done.wait(0.02):
            with self._lock:
                for page, permit, _, _ in self._queued:
                    at = permit * PERMIT_BYTES + HEARTBEAT
                    beats = struct.unpack_from("<I", page, at)[0]
                    struct.pack_into("<I", page, at, beats + 1)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            HELLO.unpack(connection.recv(HELLO.size))
            memory = os.memfd_create("permits")
            os.ftruncate(memory, PERMITS * PERMIT_BYTES)
            page = mmap.mmap(memory, PERMITS * PERMIT_BYTES)
            self._pages.append(page)
            answer = WELCOME.pack(MAGIC, 0, self.node.id)
            socket.send_fds(connection, [answer], [memory])
            os.close(memory)
            while text := connection.recv(MESSAGE.size):
                self._hear(page, *MESSAGE.unpack(text))

    def _hear(self, page: mmap.mmap, message: int, permit: int, number: int, *about: int) -> None:
        with self._lock:
            self.given_back += message == GIVE_BACK
            if message != ASK:
                return
            self.asked += 1
            if not self.permits:
                self._queued.append((page, permit, number, about[-1]))
                return
        at = permit * PERMIT_BYTES
        recalled, beats = struct.unpack_from("<II", page, at + 28)
        until = time.monotonic_ns() + FOREVER // 4
        # The number last: it says that the rest is there.
        page[at + 4 : at + ANSWER.size] = ANSWER.pack(
            number, 0, 1 << 40, until, self.calls, recalled, beats
        )[4:]
        struct.pack_into("<I", page, at, number)
