"""A job's agent on a site with several file systems: whose gates are open, and for how long."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from live.agent.agent_harness import LEASE, LEND_AFTER, Harness

from penstock.identities import FileSystemId
from penstock.live.protocol import messages

HOME, SCRATCH = FileSystemId(0), FileSystemId(1)
MAX_WAIT = 30.0
MIB = 1 << 20


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Harness]:
    roots = [tmp_path / "home", tmp_path / "scratch"]
    for root in roots:
        root.mkdir()
    job = Harness(tmp_path, roots)
    yield job
    job.close()


def gates(job: Harness) -> list[bool]:
    """Return whether the gates at home and on scratch are open."""
    return [job.is_open(each) for each in (HOME, SCRATCH)]


def turn(job: Harness, *file_systems: FileSystemId) -> None:
    job.send(messages.Turn(phase=1, file_systems=list(file_systems)))
    job.synchronise()


def on_both(job: Harness) -> None:
    """A phase has its turn at home, and waits on scratch."""
    job.wait_on(HOME)
    assert job.receive(messages.PhaseBegan).file_systems == [HOME]
    turn(job, HOME)
    job.move_on(HOME, MIB)
    job.wait_on(SCRATCH)
    began = job.receive(messages.PhaseBegan)
    assert (began.phase, began.file_systems) == (1, [HOME, SCRATCH])
    turn(job, HOME)
    assert gates(job) == [True, False]


def test_each_gate_opens_with_the_turn_there(job: Harness) -> None:
    on_both(job)
    turn(job, HOME, SCRATCH)
    assert gates(job) == [True, True]
    turn(job, SCRATCH)
    assert gates(job) == [False, True]
    job.send(messages.Hold(phase=1))
    job.synchronise()
    assert gates(job) == [False, False]


def test_a_wait_on_one_file_system_ends_after_the_longest_time(job: Harness) -> None:
    on_both(job)
    job.clock.advance(MAX_WAIT - 1)
    job.synchronise()
    assert gates(job) == [True, False]
    job.clock.advance(2.0)
    job.synchronise()
    assert gates(job) == [True, True]
    assert job.agent.counters()["overdue"] == 1
    job.send(messages.Hold(phase=1))  # it keeps what it has out of turn
    job.synchronise()
    assert gates(job) == [False, True]


def test_gates_open_by_themselves_without_a_controller(job: Harness) -> None:
    on_both(job)
    job.clock.advance(LEASE + 1)
    assert gates(job) == [True, True]
    job.synchronise()
    assert job.agent.counters()["lapses"] == 1


def test_heartbeats_keep_the_gates_closed_that_are(job: Harness) -> None:
    on_both(job)
    for _ in range(4):
        job.clock.advance(MAX_WAIT / 5)
        job.send(messages.Heartbeat(mode="enforce"))
        job.synchronise()
    job.clock.advance(LEASE - 1)
    assert gates(job) == [True, False]


def test_the_kill_switch_opens_all_gates(job: Harness) -> None:
    on_both(job)
    job.send(messages.Heartbeat(mode="off"))
    job.synchronise()
    assert gates(job) == [True, True]
    job.send(messages.Heartbeat(mode="enforce"))
    job.synchronise()
    assert job.is_open(HOME)


def test_between_phases_all_gates_are_closed(job: Harness) -> None:
    on_both(job)
    turn(job, HOME, SCRATCH)
    job.move_on(SCRATCH, 2 * MIB)
    job.clock.advance(10.0)
    assert job.receive(messages.PhaseEnded).phase == 1
    job.synchronise()
    assert gates(job) == [False, False]
    job.wait_on(SCRATCH)
    began = job.receive(messages.PhaseBegan)
    assert (began.phase, began.file_systems) == (2, [SCRATCH])


def test_a_marked_phase_asks_for_its_turn_at_its_first_call(job: Harness) -> None:
    job.write(begun=1)
    job.synchronise(never=messages.PhaseBegan)
    job.clock.advance(2 * MAX_WAIT - LEASE / 2)  # it does not wait yet
    job.send(messages.Heartbeat(mode="enforce"))
    job.synchronise(never=messages.PhaseBegan)
    assert job.agent.counters()["overdue"] == 0
    job.wait_on(SCRATCH)
    assert job.receive(messages.PhaseBegan).file_systems == [SCRATCH]
    turn(job, SCRATCH)
    assert gates(job) == [False, True]


def test_a_turn_that_was_lent_is_asked_for_where_the_next_call_waits(job: Harness) -> None:
    job.write(begun=1)
    job.wait_on(HOME)
    job.receive(messages.PhaseBegan)
    turn(job, HOME)
    job.move_on(HOME, MIB)
    job.clock.advance(10 * LEND_AFTER)
    assert job.receive(messages.Idle).lends
    job.send(messages.Hold(phase=1, turn_lent=True))
    job.synchronise()
    assert gates(job) == [False, False]
    job.wait_on(SCRATCH)
    assert job.receive(messages.PhaseBegan).file_systems == [SCRATCH]


def test_a_slice_opens_and_closes_one_gate(job: Harness) -> None:
    on_both(job)
    turn(job, HOME, SCRATCH)
    for is_open in (False, True):
        job.send(messages.Slice(phase=1, open=is_open, file_system=SCRATCH))
        job.synchronise()
        assert gates(job) == [True, is_open]


def test_a_job_that_is_observed_names_what_it_moves_data_on(job: Harness) -> None:
    job.send(messages.Heartbeat(mode="observe"))
    job.synchronise()
    job.write(slots=1, pid=os.getpid())
    job.move_on(SCRATCH, 4 * MIB)
    assert job.receive(messages.PhaseBegan).file_systems == [SCRATCH]
    job.move_on(HOME, 5 * MIB)
    assert job.receive(messages.PhaseBegan).file_systems == [HOME, SCRATCH]
    assert gates(job) == [True, True]


def test_a_new_controller_is_told_of_all_file_systems_of_the_phase(job: Harness) -> None:
    on_both(job)
    job.disconnect()
    job.accept()
    assert job.receive(messages.BeginJob).resumes == "a.1"
    job.send(job.accepted)
    began = job.receive(messages.PhaseBegan)
    assert began.file_systems == [HOME, SCRATCH]
    assert began.transferring is not None
    assert gates(job) == [True, True]  # what transfers is not stopped again
