"""Turns of real processes on an emulated file system, and what becomes of them when things die."""

import os
import signal
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from limits import within
from live.controller.turn_deployment import LEASE, WAIT, Deployed, ScriptedJob

from penstock.live.protocol.state_directory import wait_for_exit

MIB = 1 << 20
HEADER = Path(__file__).parents[3] / "native" / "client"


def hands(files: list[Path], runs: "list[Any]") -> list[Path]:
    """Follow files while they grow; return whose growth was seen, one name a change of hands."""
    sizes, grew = dict.fromkeys(files, 0), []
    deadline = time.monotonic() + WAIT
    while any(run.poll() is None for run in runs):
        assert time.monotonic() < deadline
        for file in files:
            size = file.stat().st_size if file.exists() else 0
            if size > sizes[file]:
                sizes[file] = size
                grew.append(file)
        time.sleep(0.005)
    return [file for file, _ in groupby(grew)]


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_one_transfers_at_a_time_where_turns_are_enforced(site: Deployed, mode: str) -> None:
    """exclusive-fcfs: files grow one after the other, not in turns; observed, nobody waits."""
    site.up(mode=mode)
    files = [site.root / name for name in "abc"]
    copies = [site.run(f.name, "dd", "if=/dev/zero", f"of={f}", "bs=1M", "count=24") for f in files]
    changes = hands(files, copies)
    assert [copy.returncode for copy in copies] == [0, 0, 0]
    assert [file.stat().st_size for file in files] == [24 * MIB] * 3
    status = site.status()
    if mode == "enforce":
        assert len(changes) <= status.turns
        assert sum(job.waits for job in status.jobs) > 0
    else:
        assert len(changes) > 6
        assert [job.waits for job in status.jobs] == [0, 0, 0]
    assert status.fail_open_total == 0


def test_small_writes_and_holders_of_locks_never_wait(site: Deployed) -> None:
    """A log's line must not hang; who holds a lock may be what the job with the turn waits for."""
    site.up()
    first, small, locking, large = map(site.obedient, ("first", "small", "locking", "large"))
    site.held(first, large)
    small.do("small")
    small.do("log")  # 100 KiB in all: more than passes at once
    locking.do("lock")
    locking.do("write 4")
    assert large.is_silent()
    assert site.job("first").doing == "transferring"
    first.do("end")
    assert large.answer() == "write"
    for job in (first, small, locking, large):
        assert job.finish()["fail_opens"] == 0
    assert [site.job(name).waits for name in ("small", "locking")] == [0, 0]
    assert site.job("locking").counters["locked"] == 4
    assert site.job("large").waits > 0


def test_small_writes_at_full_speed_and_locks_given_back_wait(site: Deployed) -> None:
    site.up()
    first, streaming, locking = map(site.obedient, ("first", "streaming", "locking"))
    first.do("begin")
    locking.do("lock")
    locking.do("unlock")
    for job, what in ((streaming, "stream"), (locking, "write 1")):
        job.tell(what)
        site.until(job.name, lambda entry: entry.doing == "waiting")
        assert job.is_silent()
    first.do("end")
    assert (streaming.answer(), locking.answer()) == ("stream", "write")
    for job in (first, streaming, locking):
        assert job.finish()["fail_opens"] == 0


@pytest.mark.parametrize("mode", ["enforce", "observe"])
@pytest.mark.parametrize("language", ["python", "c"])
def test_phases_that_a_program_says_are_counted_exactly(
    site: Deployed, compiled: Callable[..., str], language: str, mode: str
) -> None:
    site.up(mode=mode)
    if language == "c":
        run = site.run("c", compiled("phases.c", "-I", str(HEADER)), "out", "5")
        assert run.wait(WAIT) == 0
    else:
        job = site.obedient("python")
        for _ in range(5):
            for line in ("begin", "write 1", "end"):
                job.do(line)
        job.finish()
    entry = site.job(language)
    assert (entry.phases, entry.phase_bytes) == (5, MIB)


def test_the_verbs_say_who_waits_and_why(site: Deployed) -> None:
    site.up()
    first, second = site.obedient("first"), site.obedient("second")
    site.held(first, second)
    assert "for first.1" in site.penstock("top", "--once", "--interval", "0.2 s")
    page = site.penstock("explain", "second")
    assert "waiting for its turn" in page
    assert "for first.1" in page
    first.do("end")
    assert second.answer() == "write"
    second.finish()
    assert "It ended (exit status 0)" in site.penstock("explain", "second.2")
    assert "waited for turns for" in site.penstock("explain", "second.2")


@pytest.mark.timed
def test_the_kill_switch_opens_every_gate_within_2_s(site: Deployed) -> None:
    site.up()
    first, second = site.obedient("first"), site.obedient("second")
    site.held(first, second)
    began = time.monotonic()
    site.penstock("mode", "off")
    assert second.answer(within(2.0)) == "write"
    assert time.monotonic() - began < within(2.0)
    second.do("write 4", within(2.0))  # the holder still holds, and nobody cares
    assert site.job("second").mode == "off"


@pytest.mark.timed
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_without_the_controllers_word_held_jobs_go_on(site: Deployed, number: int) -> None:
    """Within the lease and 2 s; each is counted, and the job ends well."""
    site.up()
    first, second = site.obedient("first"), site.obedient("second")
    site.held(first, second)
    controller = site.controller
    os.kill(controller, number)
    try:
        assert second.answer(within(LEASE + 2.0)) == "write"
        second.do("write 4")
        first.do("end")
        assert second.finish()["fail_opens"] >= 1
        first.finish()
    finally:
        if number == signal.SIGSTOP:
            os.kill(controller, signal.SIGCONT)
    if number == signal.SIGSTOP:
        lapsed = site.until("second", lambda job: job.state == "ended")
        assert lapsed.counters["lapses"] >= 1
        assert "(lapses)" in site.penstock("explain", "second.2")


@pytest.mark.timed
def test_a_job_whose_agent_is_killed_goes_on_within_the_lease(site: Deployed) -> None:
    site.up()
    first, second = site.obedient("first"), site.obedient("second")
    site.held(first, second)
    os.kill(second.run.pid, signal.SIGKILL)
    assert second.answer(within(LEASE + 1.0)) == "write"
    second.do("write 4")
    assert site.until("second", lambda job: job.state == "lost").status is None
    assert "lost" in site.penstock("explain", "second.2")


def test_a_job_whose_agent_was_stopped_is_not_held_again(site: Deployed) -> None:
    """Its gate opened by itself within its phase, which its agent takes note of when it goes on."""
    site.up()
    first, second = site.obedient("first"), site.obedient("second")
    first.do("begin")
    second.tell("write 80")
    site.until("second", lambda job: job.doing == "waiting")
    os.kill(second.run.pid, signal.SIGSTOP)
    try:
        deadline = time.monotonic() + WAIT
        while (site.root / "second.out").stat().st_size < 8 * MIB:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        os.kill(second.run.pid, signal.SIGCONT)
    assert second.answer(WAIT) == "write"  # before max_wait
    second.finish()
    assert site.job("second").counters["lapses"] == 1


@pytest.mark.timed
@pytest.mark.parametrize("victim", ["command", "run"])
def test_the_turn_of_a_killed_holder_passes_on_at_once(site: Deployed, victim: str) -> None:
    """Not after max_wait, nor after the 3 s that an agent may be silent."""
    site.up()
    first, second = site.obedient("first"), site.obedient("second")
    site.held(first, second)
    os.kill(first.pid if victim == "command" else first.run.pid, signal.SIGKILL)
    assert second.answer(within(2.0)) == "write"
    assert second.finish()["fail_opens"] == 0


@pytest.mark.timed
def test_nobody_waits_longer_than_max_wait(site: Deployed) -> None:
    site.up("--set", "live.max-wait=1 s")
    first, second = site.obedient("first"), site.obedient("second")
    first.do("begin")
    began = time.monotonic()
    second.tell("write 4")
    assert second.answer(within(1.0 + 2.0)) == "write"
    assert time.monotonic() - began >= 1.0
    second.finish()
    counters = site.job("second").counters
    assert counters["overdue"] == 1
    first.do("end")
    assert first.finish()["fail_opens"] == 0


def test_a_controller_that_comes_back_takes_running_jobs_in_again(site: Deployed) -> None:
    """Under their ids, with their phases to come, and with processes that they start later."""
    site.up()
    first, second = site.obedient("first"), site.obedient("second")
    site.held(first, second)
    killed = os.pidfd_open(site.controller)
    os.kill(site.controller, signal.SIGKILL)
    assert wait_for_exit(killed, WAIT)
    os.close(killed)
    assert second.answer() == "write"
    site.up()
    for name, id in (("first", "first.1"), ("second", "second.2")):
        assert site.until(name, lambda job: job.state == "running").id == id
    first.do("end")
    third = site.obedient("third")
    assert int(str(site.job("third").id).removeprefix("third.")) > 2  # numbers never come twice
    _turns_work_again(site, second, third)
    second.do("spawn 2")
    second.finish()
    entry = site.job("second")
    assert (entry.id, entry.state) == ("second.2", "ended")
    assert entry.forwarded_bytes + entry.direct_bytes == (4 + 2) * MIB


def _turns_work_again(site: Deployed, holder: ScriptedJob, waiter: ScriptedJob) -> None:
    site.until(holder.name, lambda job: job.doing == "computing")
    site.held(holder, waiter)
    holder.do("end")
    assert waiter.answer() == "write"
