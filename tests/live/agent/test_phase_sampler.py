"""Threads that died during a call do not count: the phase ends, and other jobs get their turn."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import pytest
from live.client.waiting_processes import Closed, Process, closed, next_line, until
from live.controller.turn_deployment import WAIT, deployed

from penstock.live.agent.phase_sampler import PhaseSampler
from penstock.live.protocol.shared_page import SlotOwner

WAIT_FOR_SIGNAL = """
import ctypes, platform, signal, threading
f = os.open('f', os.O_CREAT | os.O_RDWR)
def write():
    print('writes', flush=True)
    os.write(f, MIB)
def when_asked(act):
    signal.sigwait({signal.SIGUSR1})
    act()
def sleep():
    os.execvp('sleep', ['sleep', '60'])
def sleep_unwatched():
    os.execve('/bin/sleep', ['sleep', '60'], {})
def end_this_thread():
    ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)
def beside(*does):
    threading.Thread(target=does[0], args=does[1:]).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
"""
LEFT_BEHIND = """
import os, sys
child = os.fork()
if child == 0:
    f = os.open('f', os.O_CREAT | os.O_RDWR)
    while True:
        os.pwrite(f, bytes(64 << 20), 0)
print(child, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def job(root: Path, tmp_path: Path) -> Iterator[Closed]:
    with closed(root, tmp_path) as job:
        yield job


def waiting(job: Closed, program: str) -> Process:
    process = job.python(WAIT_FOR_SIGNAL + program)
    assert next_line(process) == "writes"
    until(lambda: process.pid in job.waiting(), "the thread does not wait at the gate")
    assert PhaseSampler(job.pages).is_waiting()
    return process


def command(process: Process) -> str:
    return Path(f"/proc/{process.pid}/comm").read_text().strip()


@pytest.mark.parametrize(
    "program",
    ["beside(write)\nwhen_asked(sleep_unwatched)", "beside(when_asked, sleep)\nwrite()"],
    ids=["by the first thread", "by another"],
)
def test_a_wait_ends_with_its_thread_when_exec_is_called(job: Closed, program: str) -> None:
    """The process lives on; where its first thread waited, even the thread's id does."""
    process = waiting(job, program)
    process.send_signal(signal.SIGUSR1)
    until(lambda: command(process) == "sleep", "it does not call exec")
    until(lambda: not PhaseSampler(job.pages).in_call(), "a thread that is gone still calls")
    assert process.poll() is None


def test_a_thread_waits_on_when_the_first_of_its_process_has_ended(job: Closed) -> None:
    """The process then looks like one that is dead and that nobody waited for."""
    process = waiting(job, "beside(write)\nwhen_asked(end_this_thread)")
    process.send_signal(signal.SIGUSR1)
    state = Path(f"/proc/{process.pid}/stat")
    until(lambda: state.read_text().rpartition(")")[2].split()[0] == "Z", "it has not ended")
    sampler = PhaseSampler(job.pages)
    assert sampler.is_waiting()
    job.pages.open_gate()
    until(lambda: not sampler.in_call(), "it waits at an open gate")
    assert job.pages.total("write_bytes") == 1 << 20


def test_a_thread_with_an_unknown_id_lives_as_long_as_its_process() -> None:
    """An older library does not record the thread; ids of a container mean nothing here."""

    class Calling:
        def __init__(self, thread: SlotOwner) -> None:
            self.thread = thread

        def threads_in_call(self) -> list[tuple[SlotOwner, bool]]:
            return [(self.thread, False)]

    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    cases = {
        SlotOwner(os.getpid()): True,
        SlotOwner(child): False,
        SlotOwner(child, namespace=1, id=child): True,
    }
    results = {thread: PhaseSampler(cast(Any, Calling(thread))).in_call() for thread in cases}
    os.waitpid(child, 0)
    assert results == cases


def test_the_turn_of_a_process_that_nobody_waited_for_passes_on(tmp_path: Path) -> None:
    """Killed during a write; its parent, and so its job, lives on. max-wait is 30 s."""
    with deployed(tmp_path) as site:
        site.up()
        first = site.run("first", sys.executable, "-c", LEFT_BEHIND)
        child = int(cast(IO[str], first.stdout).readline())
        site.until("first", lambda job: job.doing == "transferring")
        second = site.obedient("second")
        second.tell("write 4")
        site.until("second", lambda job: job.doing == "waiting")
        os.kill(child, signal.SIGKILL)
        assert second.answer(WAIT) == "write"
        assert second.finish()["fail_opens"] == 0
        assert first.poll() is None
