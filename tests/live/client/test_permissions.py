"""A call that waits for its permission, and what its end leaves in the I/O node's page."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from limits import HANG
from live.client.slow_permits import PAGE_SEALS, SlowPermits
from live.client.waiting_processes import next_line, until

from penstock.live.agent.page_server import PageServer
from penstock.live.protocol.shared_page import SharedPages

WRITER = """
import os, signal, time
def tell(number, frame): print(signal.Signals(number).name, flush=True)
for number in (signal.SIGTERM, signal.SIGALRM): signal.signal(number, tell)
fd = os.open("f", os.O_RDWR | os.O_CREAT)
print("begins", flush=True)
os.write(fd, bytes(65536))
print("wrote", os.fstat(fd).st_size, flush=True)
"""


@pytest.fixture
def pages(root: Path) -> Iterator[SharedPages]:
    with SharedPages([root], longest_wait=3 * HANG, patience=3 * HANG) as pages:
        yield pages


@pytest.fixture
def writer(agent: PageServer, root: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", WRITER],
        cwd=root,
        env=os.environ | agent.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        process.kill()


def test_a_signal_to_stop_ends_the_wait_for_a_permission(
    tmp_path: Path, pages: SharedPages, request: pytest.FixtureRequest
) -> None:
    """As at the gate: the call is made, then the handler runs; other signals wait for the call."""
    with SlowPermits(tmp_path / "node.sock", permits=False) as node:
        pages.assign([node.node])
        process = request.getfixturevalue("writer")
        assert next_line(process) == "begins"
        until(lambda: node.questions == 1, "it does not ask")
        process.send_signal(signal.SIGALRM)
        process.send_signal(signal.SIGTERM)
        assert sorted(next_line(process) for _ in range(2)) == ["SIGALRM", "SIGTERM"]
        assert next_line(process) == "wrote 65536"
        assert process.wait(HANG) == 0
    assert pages.total("failed_open") == 1


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGVTALRM, signal.SIGRTMAX])
def test_a_signal_that_ends_a_program_does_so_while_it_waits_for_a_permission(
    tmp_path: Path, pages: SharedPages, request: pytest.FixtureRequest, number: int
) -> None:
    with SlowPermits(tmp_path / "node.sock", permits=False) as node:
        pages.assign([node.node])
        process = request.getfixturevalue("writer")
        assert next_line(process) == "begins"
        until(lambda: node.questions == 1, "it does not ask")
        process.send_signal(signal.SIGALRM)  # which it handles, after the call
        process.send_signal(signal.SIGCHLD)  # which ends nothing
        process.send_signal(number)
        assert process.wait(HANG) == -number
        assert process.stdout.read() == ""


@pytest.mark.parametrize("calls", [1, 1000])
def test_a_cancelled_thread_gives_its_permission_back(
    tmp_path: Path, pages: SharedPages, run: Any, compiled: Any, calls: int
) -> None:
    with SlowPermits(tmp_path / "node.sock", calls=calls) as node:
        pages.assign([node.node])
        assert run(compiled("probes.c", "-w"), "cancelled").stdout == "cancelled\n"
        # A thread that was cancelled before it asked has nothing to give.
        until(lambda: node.given_back >= 1, "it gives nothing back")
        assert node.in_call() == []
    assert pages.total("failed_open") == 0


@pytest.mark.security
@pytest.mark.parametrize("seals", [0, PAGE_SEALS])
def test_a_page_that_an_io_node_could_take_away_is_not_used(
    tmp_path: Path, pages: SharedPages, run: Any, seals: int
) -> None:
    """A program that looked into it then would end with SIGBUS: it writes directly instead."""
    with SlowPermits(tmp_path / "node.sock", seals=seals) as node:
        pages.assign([node.node])
        assert run(sys.executable, "-S", "-c", WRITER).stdout.split()[-1] == "65536"
    assert pages.total("forwarded_writes") == (1 if seals else 0)
    assert pages.total("failed_open") == (0 if seals else 1)
