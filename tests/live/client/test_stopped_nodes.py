"""An I/O node of another host that stands still with data which only its kernel has: sync waits."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from limits import HANG
from live.client.waiting_processes import next_line
from live.ionode.frames import TOKEN
from live.ionode.real_node import RealNode

from penstock.live.agent.page_server import PageServer
from penstock.live.protocol.shared_page import SharedPages

PATIENCE = 1.5
PROLOGUE = """
import os, sys, threading
fd, data = os.open(f"f{os.getpid()}", os.O_CREAT | os.O_RDWR), bytes(8 << 20)
assert os.write(fd, data) == len(data)
def report(call):
    try: call(fd); print(0, flush=True)
    except OSError as error: print(error.errno, flush=True)
print("written", flush=True); input()
"""
WAYS = {
    "fsync": "report(os.fsync); report(os.fsync); report(os.close)",
    "fdatasync": "report(os.fdatasync); report(os.fsync)",
    "close": "report(os.close)",
    "dup2": (
        "other = os.open('other', os.O_CREAT | os.O_RDWR)\nreport(lambda fd: os.dup2(other, fd))"
    ),
    "a read was late": "assert len(os.pread(fd, 10, 0)) == 10; report(os.fsync); report(os.fsync)",
    "a write is late": (
        "writer = threading.Thread(target=os.pwrite, args=(fd, data, len(data))); writer.start()\n"
        "report(os.fsync); writer.join()"
    ),
    "a child": "pid = os.fork(); report(os.fsync)\nif pid: os.waitpid(pid, 0)",
}
NO_ERROR = {"dup2"}
"""dup2 reports no error of what it closes, as in the kernel."""
ONCE = {"a child": 2}
"""How often a loss is reported, if not once: parent and child each have their own fsync."""

ALLOWED = {"a child": {0, errno.EIO}}
"""A child has none of its parent's connections: nothing proves that the I/O node is still there."""


@pytest.fixture
def pages(root: Path) -> Iterator[SharedPages]:
    with SharedPages([root], token=TOKEN, patience=PATIENCE) as pages:
        yield pages


@pytest.fixture
def node(tmp_path: Path, root: Path, pages: SharedPages) -> Iterator[RealNode]:
    with RealNode(tmp_path, 0, carries=root) as node:
        pages.assign([node.remote])
        yield node


@pytest.fixture
def writers(
    agent: PageServer, node: RealNode, root: Path, pages: SharedPages
) -> Iterator[dict[str, "subprocess.Popen[str]"]]:
    """Programs that have written 8 MiB through the I/O node; it stands still, and they go on."""
    with ExitStack() as stack:
        running = {}
        for way, program in WAYS.items():
            running[way] = subprocess.Popen(
                [sys.executable, "-S", "-c", PROLOGUE + program],
                cwd=root,
                env=os.environ | agent.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            stack.enter_context(running[way])
            stack.callback(running[way].kill)
            assert next_line(running[way]) == "written"
        assert pages.total("carried_bytes") == len(WAYS) * 8 << 20
        node.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, node.process.pid, os.WSTOPPED | os.WNOWAIT)
        for process in running.values():
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        yield running


def answers(process: "subprocess.Popen[str]") -> list[int]:
    output, _ = process.communicate(timeout=HANG)
    assert process.returncode == 0
    return [int(word) for word in output.split()]


def check_all_wait(writers: dict[str, "subprocess.Popen[str]"]) -> None:
    """All wait for longer than the patience of everything that they ask, one after the other."""
    with pytest.raises(subprocess.TimeoutExpired):
        writers["fsync"].wait(4 * PATIENCE)
    ended = {way for way, process in writers.items() if process.poll() is not None}
    assert not ended


def test_sync_and_close_wait_for_an_io_node_that_stands_still(
    writers: dict[str, "subprocess.Popen[str]"], node: RealNode
) -> None:
    """Nothing is lost, so there is no error; nor a success before it is known."""
    check_all_wait(writers)
    node.process.send_signal(signal.SIGCONT)
    for way, process in writers.items():
        assert set(answers(process)) == ALLOWED.get(way, {0}), way


def test_a_loss_is_reported_once_its_io_node_is_gone(
    writers: dict[str, "subprocess.Popen[str]"], node: RealNode
) -> None:
    """As the kernel does: the first sync or close has the error, the next ones of the file not."""
    check_all_wait(writers)
    node.process.kill()
    for way, process in writers.items():
        results = answers(process)
        errors = 0 if way in NO_ERROR else ONCE.get(way, 1)
        assert results == errors * [errno.EIO] + (len(results) - errors) * [0], way


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_who_waits_for_a_sync_can_be_ended(
    writers: dict[str, "subprocess.Popen[str]"], number: int
) -> None:
    for process in writers.values():
        os.killpg(process.pid, number)  # a child of the program, too
    for way, process in writers.items():
        assert process.wait(HANG) == -number, way
