"""I/O nodes and agents that die, stand still or are of another version: jobs go on."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from live.client.misbehaving_node import OddNode
from live.client.test_faults import Layer, folder, layer, own_job
from live.client.waiting_processes import WAIT, until
from live.ionode.frames import INTRODUCTION, MAGIC, REPLY, REQUEST, WRITE
from live.ionode.real_node import RealNode

from penstock.live.agent.page_server import PageServer
from penstock.live.protocol import shared_page
from penstock.live.protocol.shared_page import SharedPages

__all__ = ["folder", "own_job"]
STANDS_STILL = 0.5  # longer than the job's patience
OVERWRITER = """
import threading
fd, ended, failed = os.open("f", os.O_CREAT | os.O_RDWR), threading.Event(), []
def overwrite(me):
    k = 0
    while not ended.is_set():
        k += 1
        data = k.to_bytes(8, "little") * 4096
        written, back = os.pwrite(fd, data, me * 32768), os.pread(fd, 32768, me * 32768)
        if written != 32768 or back != data: failed.append((me, k, written)); return
threads = [threading.Thread(target=overwrite, args=(me,)) for me in range(3)]
[thread.start() for thread in threads]
input(); ended.set()
[thread.join() for thread in threads]
print(failed)
"""
"""Reads what it wrote at once: an older write that comes late is found."""


def goes_on(job: Layer) -> None:
    """Await a hundred more writes."""
    enough = job.pages.total("writes") + 100
    until(lambda: job.pages.total("writes") >= enough, "the program stands still")


@contextmanager
def overwriter(job: Layer) -> Iterator[None]:
    with job.begin(OVERWRITER) as process:
        try:
            goes_on(job)
            yield
            output, _ = process.communicate("\n", timeout=WAIT)
            assert (process.returncode, output) == (0, "[]\n")
        finally:
            process.kill()


def end(process: "subprocess.Popen[str]", number: signal.Signals = signal.SIGKILL) -> None:
    process.send_signal(number)
    process.wait(WAIT)


def test_a_killed_io_node_is_left_out_and_its_successor_used(own_job: Layer) -> None:
    """What it was about to write is written once, by it or directly, and never late."""
    sockets = own_job.node.control.parent
    with overwriter(own_job), ExitStack() as stack:
        node = own_job.node
        for _ in range(3):
            forwarded = own_job.pages.total("forwarded_writes")
            until(lambda: own_job.pages.total("forwarded_writes") > forwarded, "not forwarded")  # noqa: B023
            end(node.process)
            goes_on(own_job)
            node = stack.enter_context(RealNode(sockets, 0))
        until(lambda: node.measured().writes > 100, "the successor is not used")
    assert own_job.pages.total("failed_open") > 0


def test_an_io_node_that_stood_still_goes_on(own_job: Layer) -> None:
    """A write may wait for it; nothing overtakes that write at its place."""
    with overwriter(own_job):
        for _ in range(3):
            own_job.node.process.send_signal(signal.SIGSTOP)
            time.sleep(STANDS_STILL)
            own_job.node.process.send_signal(signal.SIGCONT)
            goes_on(own_job)
        before = own_job.node.measured().writes
        until(lambda: own_job.node.measured().writes > before, "it is not used again")


def test_an_io_node_that_is_killed_while_it_stands_still(own_job: Layer) -> None:
    with overwriter(own_job):
        own_job.node.process.send_signal(signal.SIGSTOP)
        time.sleep(STANDS_STILL)
        end(own_job.node.process)
        goes_on(own_job)
    assert own_job.pages.total("failed_open") > 0


def test_a_job_that_is_killed_takes_nothing_along(folder: Path, own_job: Layer) -> None:
    """Its requests end with it; another job's are served as before."""
    with own_job.begin(OVERWRITER) as process:
        goes_on(own_job)
        end(process)
    until(lambda: own_job.node.measured().connections == 0, "its connections stay")
    until(lambda: own_job.node.measured().files == 0, "its files stay")
    assert own_job.run("print(os.write(os.open('g', os.O_CREAT | os.O_WRONLY), b'x'))") == "1\n"
    assert own_job.pages.total("failed_open") == 0


class OfAnotherVersion(OddNode):
    """Greets with another magic number, in which the version is."""

    greeted = 0

    def _answer(self, connection: socket.socket) -> bool:
        hello = connection.recv(REQUEST.size + INTRODUCTION.size)
        self.greeted += 1
        connection.sendall(REPLY.pack(MAGIC + 1, REQUEST.unpack_from(hello)[2], 0, 1, self.node.id))
        return bool(connection.recv(1))  # until the client hangs up


WRITER = (
    "fd = os.open('f', os.O_CREAT | os.O_RDWR); print([os.write(fd, b'data') for _ in 'abc'])\n"
)


def test_an_io_node_of_another_version_is_not_used(own_job: Layer) -> None:
    with OfAnotherVersion(own_job.root) as node:
        own_job.pages.assign([node.node])
        assert own_job.run(WRITER) == "[4, 4, 4]\n"
        assert node.greeted == 1
    assert (own_job.root / "f").read_bytes() == b"data" * 3
    assert own_job.pages.total("failed_open") == 3
    assert own_job.pages.total("forwarded_writes") == 0


@pytest.mark.parametrize("result", [0, 5, 1 << 40, -4096, -(1 << 63)])
def test_a_result_that_no_write_has_is_no_answer(own_job: Layer, result: int) -> None:
    """A program that is told that nothing was written would try for ever."""
    with OddNode(own_job.root) as node:
        node.before = lambda operation, *_: result if operation == WRITE else None
        own_job.pages.assign([node.node])
        assert own_job.run(WRITER) == "[4, 4, 4]\n"
    assert (own_job.root / "f").read_bytes() == b"data" * 3


OTHER = shared_page.VERSION + 1


class AnswersAnyone(PageServer):
    """Hands out its pages as those of a version, whatever version is asked for."""

    version = shared_page.VERSION

    def answer(self, hello: bytes) -> bytes:
        return shared_page.CONTROL_MAGIC + self.version.to_bytes(4, "little") + bytes(4)


class AnswersAsAnother(AnswersAnyone):
    version = OTHER


@pytest.mark.parametrize(
    ("server", "version"),
    [(PageServer, OTHER), (AnswersAsAnother, shared_page.VERSION), (AnswersAnyone, OTHER)],
    ids=["refused", "answered", "pages"],
)
def test_an_agent_of_another_version_leaves_the_job_alone(
    folder: Path, own_job: Layer, server: type[PageServer], version: int
) -> None:
    """A page laid out differently must not be read, nor written to."""
    with ExitStack() as stack:
        pages = stack.enter_context(SharedPages([own_job.root], version=version))
        pages.assign([own_job.node.node])
        before = os.pread(pages.counters_fd, shared_page.COUNTERS_BYTES, 0)
        agent = stack.enter_context(server(pages, folder / "other.agent"))
        job = Layer(root=own_job.root, pages=pages, agent=agent, node=own_job.node, user=0)
        assert job.run(WRITER) == "[4, 4, 4]\n"
        assert os.pread(pages.counters_fd, shared_page.COUNTERS_BYTES, 0) == before
    assert (own_job.root / "f").read_bytes() == b"data" * 3
    assert own_job.node.measured().requests == 0


@pytest.mark.security
def test_an_io_node_that_another_user_runs_is_not_used(folder: Path) -> None:
    """It refuses; the job goes on directly."""
    with layer(folder, folder / "managed", served_by=65534) as job:
        Path(job.node.node.address).chmod(0o666)
        assert job.run(WRITER) == "[4, 4, 4]\n"
        assert job.pages.total("failed_open") == 3
        assert job.node.measured().refused >= 1
