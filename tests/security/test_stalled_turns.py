"""A process that was killed in a call holds no turn, also where its id means nothing here."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import pytest
from live.controller.turn_deployment import WAIT, deployed

from penstock.identities import FileSystemId
from penstock.live.agent.phase_sampler import STALLED_SECONDS, PhaseSampler
from penstock.live.protocol import _page_layout as layout
from penstock.live.protocol.shared_page import SharedPages

pytestmark = pytest.mark.security

MIB = 1 << 20
FOREIGN = 1 << 32 | 7
"""An owner: thread 7 of a PID namespace that is not ours."""


class Job:
    """One thread in a PID namespace of its own, on a clock of the test."""

    def __init__(self, folder: Path, file_systems: int = 1) -> None:
        self.now = 1000.0
        roots = [folder / f"root-{k}" for k in range(file_systems)]
        for root in roots:
            root.mkdir()
        self.pages = SharedPages(
            roots,
            file_systems=[FileSystemId(k) for k in range(file_systems)],
            clock_ns=lambda: round(self.now * 1e9),
        )
        self.sampler = PhaseSampler(self.pages)
        self.write(pid=7, owner=FOREIGN)
        os.pwrite(self.pages.counters_fd, (1).to_bytes(8, sys.byteorder), layout.TAKEN)

    def write(self, **fields: int) -> None:
        for name, value in fields.items():
            at = layout.FIRST_SLOT + layout.SLOT_FIELDS.get(name, 0)
            os.pwrite(self.pages.counters_fd, value.to_bytes(8, sys.byteorder), at)

    def after(self, seconds: float) -> bool:
        """Tell whether it counts as in a call after this time, in which it was sampled."""
        for _ in range(10):
            self.now += seconds / 10
            list(self.sampler.sample(self.now))
        return self.sampler.in_call()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path)
    yield made
    made.pages.close()


def test_a_call_without_progress_ends_for_the_turn(job: Job) -> None:
    job.write(in_flight=1)
    assert job.after(0.9 * STALLED_SECONDS)
    assert not job.after(0.2 * STALLED_SECONDS)
    assert not job.after(10 * STALLED_SECONDS)
    assert job.sampler.idle_seconds(job.now) > 0


def test_a_slow_call_that_ends_counts_again(job: Job) -> None:
    """Its turn had passed on, and nothing else: its next call waits for another."""
    job.write(in_flight=1)
    assert not job.after(1.5 * STALLED_SECONDS)
    job.write(in_flight=1, last_call=round(job.now * 1e9), write_bytes=8 * MIB)
    assert job.after(0.9 * STALLED_SECONDS)


def test_calls_that_end_are_progress_however_long_the_phase_is(job: Job) -> None:
    for number in range(1, 30):
        job.write(in_flight=1, write_bytes=number * MIB)
        assert job.after(0.9 * STALLED_SECONDS)


def test_a_wait_at_a_closed_gate_is_no_stall(job: Job) -> None:
    """From its opening on, the call is to move; a dead one gets one turn, and not another."""
    job.write(in_flight=1, waiting=1)
    job.pages.close_gate(1e6)
    assert job.after(20 * STALLED_SECONDS)
    assert job.sampler.is_waiting()
    job.pages.open_gate()
    assert job.after(0.9 * STALLED_SECONDS)
    assert not job.after(0.2 * STALLED_SECONDS)
    job.pages.close_gate(1e6)
    assert not job.after(20 * STALLED_SECONDS)
    assert not job.sampler.is_waiting()


def test_the_gate_that_counts_is_that_of_the_calls_file_system(tmp_path: Path) -> None:
    job = Job(tmp_path, file_systems=2)
    job.write(in_flight=2, waiting=1)
    job.pages.close_gate(1e6, [FileSystemId(0)])
    assert not job.after(1.5 * STALLED_SECONDS)
    assert job.sampler.waiting_on() == set()
    job.pages.close()


LEFT_BEHIND = """
import os, sys
with open('f', 'wb', 0) as f:
    f.write(bytes(1 << 16))
    print(os.getpid(), flush=True)
    while True:
        os.pwrite(f.fileno(), bytes(64 << 20), 0)
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None,
    reason="needs root and unshare for a PID namespace",
)
def test_the_turn_of_a_process_killed_in_a_pid_namespace_passes_on() -> None:
    """As in a container: its job lives on. The max-wait of the other is far longer."""
    with (
        tempfile.TemporaryDirectory(prefix="stall", dir="/dev/shm") as path,
        deployed(Path(path)) as site,
    ):
        site.up()
        namespace = ("unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c")
        first = site.run("first", "sh", "-c", '"$@"; read line', "sh", *namespace, LEFT_BEHIND)
        assert cast(IO[str], first.stdout).readline() == "1\n"
        site.until("first", lambda job: job.doing == "transferring")
        second = site.obedient("second")
        second.tell("write 4")
        site.until("second", lambda job: job.doing == "waiting")
        os.kill(_inner(first), signal.SIGKILL)
        assert second.answer(WAIT) == "write"
        assert second.finish()["fail_opens"] == 0
        assert first.poll() is None


def _inner(run: "subprocess.Popen[str]") -> int:
    """Return the process of the job that is first in its PID namespace."""
    for stat in Path("/proc").glob("[0-9]*/status"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        ids = next(line for line in text.splitlines() if line.startswith("NSpid:")).split()[1:]
        if len(ids) > 1 and ids[-1] == "1" and "f.fileno()" in _words(stat.parent):
            return int(ids[0])
    raise AssertionError(run.args)


def _words(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""
