"""Hostile I/O nodes: a program under the client library reads what it wrote, whatever they answer.

`PYTHONPATH=tests python -m fuzz.io_nodes --cases 20 --seed 1`. A case is a program, which an I/O
node of its host permits its calls, or one of another host carries its data. What must hold: it ends
in time and well, and its data is right.

Of an I/O node that carries data the library can check that an answer is one, to the last request,
and moved no more than was asked for. What it cannot: that acknowledged data was written, data that
was read, an error (which the program gets as the kernel's), and that a file has ended. And a write
waits for its answer as long as the connection lasts: done late, it would overwrite newer data. None
of that is tried here: these nodes do what they acknowledge, or hang up.
"""

import fcntl
import mmap
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Self

import msgspec
from fuzz.command import run_fuzzer
from fuzz.counters import EDGES
from limits import HANG
from live.client.misbehaving_node import OddNode, _receive
from live.ionode import frames
from live.ionode.frames import MAGIC, REPLY, REQUEST
from live.ionode.permissions import ANSWER, MESSAGE, PERMIT_BYTES, PERMITS, WELCOME
from live.ionode.permissions import HELLO as PERMIT_HELLO
from live.ionode.permissions import MAGIC as PERMIT_MAGIC

from penstock.live.agent.page_server import PageServer
from penstock.live.protocol.messages import Node
from penstock.live.protocol.shared_page import SharedPages

WAIT_SECONDS = 0.05
"""For an answer, and at most in a queue."""
NEXT_NODE_SECONDS = 0.01
"""After which the job's map names the node by another id: one that failed is left out for long."""
CALLS = 4000
PAGE_BYTES = PERMITS * PERMIT_BYTES
PROGRAM = f"""
import errno, os, random, sys
made = random.Random(int(sys.argv[1]))
def all_of(call, data, at):
    while data:
        moved = call(data, at)
        assert 0 < moved <= len(data), moved
        data, at = data[moved:], at + moved
def read(fd, size, at):
    data = b""
    while len(data) < size:
        part = os.pread(fd, size - len(data), at + len(data))
        assert part, (size, at)
        data += part
    return data
right = bytearray(1 << 20)
fd = os.open("f", os.O_CREAT | os.O_RDWR)
os.ftruncate(fd, len(right))
for k in range({CALLS}):
    size = made.choice((1, 100, 4096, 65536, 200_000))
    at = made.randrange(len(right) - size)
    if made.random() < 0.6:
        data = made.randbytes(size)
        all_of(lambda data, at: os.pwrite(fd, data, at), data, at)
        right[at : at + size] = data
    else:
        assert read(fd, size, at) == right[at : at + size], (k, at, size)
    if k % 500 == 0:
        try: os.fdatasync(fd)
        except OSError as error: assert error.errno == errno.EIO, error  # who wrote it is gone
low = [number for number in os.listdir("/proc/self/fd") if int(number) < 1000]
assert len(low) < 8, low  # the library's own are above
sys.stdout.buffer.write(right)
"""


class OddPermits:
    """An I/O node of the host that answers greetings and questions at random; a context manager."""

    def __init__(self, path: Path, random: Random) -> None:
        self.node = Node(number=0, id=1, address=str(path))
        self._random = random
        self._pages: list[mmap.mmap] = []
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._accept, self._scribble)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _scribble(self) -> None:
        """Change words of all pages."""
        while not self._done.wait(0.001):
            with self._lock:
                for page in self._pages[-8:]:
                    for _ in range(20):
                        permit = self._random.choice((0, 0, 0, 1, 63))
                        word = self._random.choice((*EDGES, self._random.getrandbits(64)))
                        at = permit * PERMIT_BYTES + 4 * self._random.randrange(40)
                        struct.pack_into("<I", page, at, word % 2**32)

    def _memory(self, size: int = PAGE_BYTES, seals: int = fcntl.F_SEAL_SHRINK) -> int:
        memory = os.memfd_create("permits", os.MFD_ALLOW_SEALING)
        os.ftruncate(memory, size)
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
        return memory

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError), ExitStack() as stack:
            PERMIT_HELLO.unpack(connection.recv(PERMIT_HELLO.size))
            random, kind = self._random, self._random.randrange(14)
            size = random.choice((0, 4096, PAGE_BYTES - 1)) if kind == 0 else PAGE_BYTES
            given = [self._memory(size, 0 if kind == 1 else fcntl.F_SEAL_SHRINK)]
            if kind == 2:
                given += os.pipe()
            if kind == 3:
                given.insert(0, os.open("/dev/null", os.O_RDWR))
            for descriptor in given:
                stack.callback(os.close, descriptor)
            magic = random.choice(EDGES) % 2**32 if kind == 4 else PERMIT_MAGIC
            welcome = WELCOME.pack(magic, 0, self.node.id + (kind == 5))
            if kind == 6:
                welcome = random.randbytes(random.randrange(1, 99))
            if kind == 7:
                return
            page = mmap.mmap(given[0], PAGE_BYTES) if kind > 7 else None
            socket.send_fds(connection, [welcome], [] if kind == 4 else given)
            if page is not None:
                with self._lock:
                    self._pages.append(page)
                self._answer(connection, page)

    def _answer(self, connection: socket.socket, page: mmap.mmap) -> None:
        while text := connection.recv(MESSAGE.size):
            _, permit, number, *_ = MESSAGE.unpack(text)
            match self._random.randrange(6):
                case 0:
                    if self._random.random() < 0.1:
                        return
                case 1:
                    connection.send(self._random.randbytes(40), socket.MSG_DONTWAIT)
                case _:
                    words = [self._random.choice(EDGES) for _ in range(6)]
                    answer = ANSWER.pack(
                        number,
                        *(
                            word % 2**32 if k in (0, 3, 4, 5) else word
                            for k, word in enumerate(words)
                        ),
                    )
                    at = permit * PERMIT_BYTES
                    page[at + 4 : at + ANSWER.size] = answer[4:]
                    struct.pack_into("<I", page, at, number)


class OddCarrier(OddNode):
    """An I/O node of another host that does what it acknowledges, and answers at random."""

    def __init__(self, root: Path, random: Random) -> None:
        super().__init__(root)
        self._random = random

    def _answer(self, connection: socket.socket) -> bool:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            head = _receive(connection, REQUEST.size)
            if len(head) < REQUEST.size:
                return False
            _, operation, number, _, _, count, _ = REQUEST.unpack(head)
            follows = (
                _receive(connection, count)
                if operation in (frames.HELLO, frames.PROVE, frames.OPEN, frames.WRITE)
                else b""
            )
            # What it answers comes through a pipe of ours, where it is changed.
            answered: list[bytes] = []
            reader = threading.Thread(target=lambda: answered.append(_receive(theirs, 1 << 30)))
            writer = threading.Thread(target=lambda: theirs.sendall(head + follows))
            reader.start()
            writer.start()
            goes_on = super()._answer(ours)
            writer.join()
            ours.shutdown(socket.SHUT_WR)
            reader.join()
        (answer,) = answered
        changed = self._odd(operation, number, count, answer)
        connection.sendall(changed)
        return goes_on and len(changed) >= len(answer) and self._random.random() < 0.97

    def _odd(self, operation: int, number: int, count: int, answer: bytes) -> bytes:
        """Return an answer, or what is nearly one."""
        _, _, result, boot, id = REPLY.unpack_from(answer)
        magic, rest, random = MAGIC, answer[REPLY.size :], self._random
        match random.randrange(40), operation:
            case 0, _:
                magic = random.choice(EDGES) % 2**32
            case 1, _:
                number = (number + random.choice((1, -1, 2**31))) % 2**32
            case 2, (frames.READ | frames.WRITE):
                result = random.choice((count + 1, 2**31, 2**63 - 1, -4096, -(2**31), -(2**63)))
            case 3, frames.WRITE:
                result = 0
            case 4, _:
                return random.randbytes(random.randrange(200))
            case 5, _:
                return answer[: random.randrange(len(answer))]
            case 6, frames.HELLO:
                boot, id = random.choice(EDGES), id + 1
            case 6, frames.PROVE:
                boot, id = random.choice(EDGES), 1
            case 7, frames.OPEN:
                result = random.choice((-5000, -22, -116))
            case 8, (frames.FSYNC | frames.FDATASYNC | frames.CLOSE):
                result = random.choice((1, 2**63 - 1))
            case 9, frames.READ if result > 1:
                result, rest = 1, rest[:1]
        return REPLY.pack(magic, number, result, boot, id) + rest


def run_program(
    folder: Path, random: Random, make: Callable[[Path], OddPermits | OddCarrier]
) -> int:
    """Run the program with an I/O node; return how many of its calls an I/O node decided."""
    root = folder / "root"
    root.mkdir()
    with (
        SharedPages(
            [root], token=frames.TOKEN, longest_wait=WAIT_SECONDS, patience=WAIT_SECONDS
        ) as pages,
        PageServer(pages, folder / "agent") as agent,
        make(root) as node,
    ):
        pages.assign([node.node])
        with subprocess.Popen(
            [sys.executable, "-S", "-c", PROGRAM, str(random.getrandbits(32))],
            cwd=root,
            env=os.environ | agent.environment(),
            stdout=subprocess.PIPE,
        ) as process:
            guard = threading.Timer(HANG, process.kill)
            guard.start()
            renewed = threading.Event()

            def renew() -> None:
                while not renewed.wait(NEXT_NODE_SECONDS):
                    node.node = msgspec.structs.replace(node.node, id=node.node.id + 2)
                    pages.assign([node.node])

            renewing = threading.Thread(target=renew)
            renewing.start()
            assert process.stdout is not None
            right = process.stdout.read()
            status = process.wait()
            guard.cancel()
            renewed.set()
            renewing.join()
        assert status == 0, status
        assert (root / "f").read_bytes() == right
        return pages.total("forwarded_writes") + pages.total("forwarded_reads")


def fuzz(cases: int, seed: int) -> None:
    """Try some cases, of each kind of I/O node in turn; AssertionError: what must hold does not."""
    random, decided = Random(seed), 0
    for k in range(cases):
        with tempfile.TemporaryDirectory(prefix="fz", dir="/dev/shm") as path:
            folder = Path(path)

            def make(root: Path) -> OddPermits | OddCarrier:
                own = Random(random.getrandbits(32))
                carries = k % 2 == 1  # noqa: B023
                return OddCarrier(root, own) if carries else OddPermits(folder / "node", own)  # noqa: B023

            decided += run_program(folder, random, make)
    assert decided > 0, "the I/O nodes were not used"


if __name__ == "__main__":
    run_fuzzer("I/O nodes", fuzz, cases=20)
