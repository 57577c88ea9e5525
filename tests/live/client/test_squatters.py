"""Who listens at the port of a dead I/O node of another host learns nothing and delays nobody."""

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pytest
from limits import HANG
from live.client.misbehaving_node import OddNode
from live.client.waiting_processes import next_line
from live.ionode.frames import NONCE_BYTES, REPLY, TOKEN, WRITE
from live.ionode.real_node import RealNode

from penstock.live.agent.page_server import PageServer
from penstock.live.protocol.shared_page import SharedPages

pytestmark = pytest.mark.security

PATIENCE = 1.0
PROLOGUE = """
import os, signal
fd = os.open(f"f{os.getpid()}", os.O_CREAT | os.O_RDWR); os.write(fd, bytes(1 << 20))
def report(call):
    try: call(fd); print(0, flush=True)
    except OSError as error: print(error.errno, flush=True)
print("written", flush=True); input()
"""
HANDLER = "signal.signal(signal.SIGTERM, lambda *_: os._exit(7)); print('ready', flush=True)\n"


@pytest.fixture
def pages(root: Path) -> Iterator[SharedPages]:
    with SharedPages([root], token=TOKEN, patience=PATIENCE) as pages:
        yield pages


@pytest.fixture
def node(tmp_path: Path, root: Path, pages: SharedPages) -> Iterator[RealNode]:
    with RealNode(tmp_path, 0, carries=root) as node:
        pages.assign([node.remote])
        yield node


Begin = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def begin(agent: PageServer, node: RealNode, root: Path) -> Iterator[Begin]:
    """Begin a program that has written through the I/O node and then waits for a line."""
    with ExitStack() as stack:

        def begin(program: str) -> "subprocess.Popen[str]":
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-S", "-c", PROLOGUE + program],
                    cwd=root,
                    env=os.environ | agent.environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            assert next_line(process) == "written"
            return process

        yield begin


def go_on(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


class Squatter:
    """Listens where an I/O node was; a context manager."""

    def __init__(self, port: int, answer: bytes, pause: float) -> None:
        self.received = bytearray()
        self._answer, self._pause = answer, pause
        self._taken: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", port), backlog=64)

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._taken:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._taken.append(connection)
            threading.Thread(target=self._hear, args=(connection,), daemon=True).start()

    def _hear(self, connection: socket.socket) -> None:
        try:
            self.received += connection.recv(4096)
            for byte in self._answer:
                connection.sendall(bytes([byte]))
                time.sleep(self._pause)
            while data := connection.recv(4096):
                self.received += data
        except OSError:
            pass


@pytest.mark.parametrize("call", ["os.fsync", "os.fdatasync", "os.close"])
@pytest.mark.parametrize("slowly", [False, True])
def test_a_squatter_gets_no_token_and_delays_no_sync(
    begin: Begin, node: RealNode, call: str, slowly: bool
) -> None:
    """Silent, or with one byte now and then. What it hears is no proof of anything."""
    process = begin(f"os.pwrite(fd, b'x' * 4096, 1 << 20); report({call})")
    node.process.kill()
    node.process.wait()
    assert node.remote.port
    answer = bytes(REPLY.size) if slowly else b""
    with Squatter(node.remote.port, answer, PATIENCE / 4) as squatter:
        began = time.monotonic()
        go_on(process)
        output, _ = process.communicate(timeout=HANG)
        assert output.split() == [str(errno.EIO)]
        assert time.monotonic() - began < 10 * PATIENCE
        received = bytes(squatter.received)
    assert TOKEN not in received
    assert len(received) % 152 == 0, "more than greetings, without a proof"


@pytest.mark.parametrize("bit", [0, 8 * NONCE_BYTES, 8 * NONCE_BYTES + 255])
def test_a_wrong_proof_of_the_io_node_is_refused(
    agent: PageServer, pages: SharedPages, root: Path, bit: int
) -> None:
    class Wrong(OddNode):
        def challenge(self, hello: bytes, reply: bytes) -> bytes:
            challenge = bytearray(super().challenge(hello, reply))
            challenge[bit // 8] ^= 1 << bit % 8
            return bytes(challenge)

    with Wrong(root) as odd:
        check_unused(agent, pages, root, odd)


def test_an_io_node_with_another_token_is_refused(
    agent: PageServer, pages: SharedPages, root: Path
) -> None:
    with OddNode(root, token=bytes(32)) as odd:
        check_unused(agent, pages, root, odd)


def check_unused(agent: PageServer, pages: SharedPages, root: Path, odd: OddNode) -> None:
    pages.assign([odd.node])
    program = "import os; os.write(os.open('g', os.O_CREAT | os.O_RDWR), b'data')"
    subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=root,
        env=os.environ | agent.environment(),
        check=True,
    )
    assert (root / "g").read_bytes() == b"data"
    assert odd.count(WRITE) == 0
    assert pages.total("failed_open") > 0


@pytest.mark.parametrize("before", ["", "os.pread(fd, 10, 0)\n"])
def test_a_signal_that_is_handled_ends_the_wait_for_a_stopped_io_node(
    begin: Begin, node: RealNode, before: str
) -> None:
    process = begin(HANDLER + before + "report(os.fsync)")
    node.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, node.process.pid, os.WSTOPPED | os.WNOWAIT)
    go_on(process)
    assert next_line(process) == "ready"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(4 * PATIENCE)
    process.send_signal(signal.SIGTERM)
    assert process.wait(HANG) == 7
