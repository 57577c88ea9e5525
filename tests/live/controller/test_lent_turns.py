"""A phase that a job said and does not use: its turn goes to who waits, and it stays one phase."""

import os
import signal
import sys

import pytest
from live.controller.turn_deployment import OBEDIENT, Deployed, ScriptedJob
from live.controller.turn_harness import TurnHarness

from penstock import registry
from penstock.core.ledger import Ledger
from penstock.core.manager import Manager
from penstock.learn.periods import Period
from penstock.learn.phases import Began, Ended, PhaseFinder
from penstock.live.controller.turn_state import PhaseReport
from penstock.live.controller.turns import Turns
from penstock.live.protocol import messages
from penstock.model import Job, PhaseBegan, Site

MIB = 1 << 20


def test_an_idle_holder_lends_its_turn_and_asks_again_when_it_calls(site: Deployed) -> None:
    """max-wait is 30 s, and a forgotten mark a minute: neither is what ends these waits."""
    site.up()
    first, second = site.obedient("first"), site.obedient("second")
    first.do("mark")
    first.do("write 4")
    second.do("begin", 10.0)
    assert site.job("second").doing == "transferring"
    first.tell("write 4")
    assert site.until("first", lambda job: job.doing == "waiting").behind == [site.job("second").id]
    assert first.is_silent()
    second.do("end")
    assert first.answer() == "write"
    first.do("end")
    for job in (first, second):
        assert job.finish()["fail_opens"] == 0
    entry = site.job("first")
    assert (entry.phases, entry.phase_bytes, entry.counters["phases"]) == (1, 8 * MIB, 1)
    assert entry.turn_waited_seconds is not None
    assert entry.turn_waited_seconds > 0


def test_a_lent_phase_that_ends_without_a_further_call_is_told_whole(site: Deployed) -> None:
    site.up()
    first, second = site.obedient("first"), site.obedient("second")
    first.do("mark")
    first.do("write 4")
    second.do("begin", 10.0)
    first.do("end")
    assert site.until("first", lambda job: job.phases == 1).phase_bytes == 4 * MIB
    assert site.job("second").doing == "transferring"
    second.do("end")
    for job in (first, second):
        assert job.finish()["fail_opens"] == 0


def test_the_mark_of_a_process_that_died_ends_with_it(site: Deployed) -> None:
    """Its job goes on, and would have a marked phase for a minute."""
    site.up()
    command = f"{sys.executable} {OBEDIENT} first.out; {sys.executable} {OBEDIENT} first.out"
    first = ScriptedJob(site.run("first", "sh", "-c", command), "first")
    first.do("begin")
    assert site.job("first").doing == "transferring"
    os.kill(first.pid, signal.SIGKILL)
    first.pid = int(first.answer())
    site.until("first", lambda job: job.doing == "computing")
    first.finish()


def test_marks_that_nobody_is_left_to_take_back_end_as_if_nobody_had_said_them() -> None:
    finder = PhaseFinder()
    finder.sample(0.0, busy=False, last_call=0.0, moved=0)
    assert finder.began(1.0) == Began(time=1.0)
    finder.sample(2.0, busy=False, last_call=2.0, moved=4 * MIB)
    assert finder.sample(50.0, busy=False, last_call=2.0, moved=4 * MIB) is None
    finder.unmark()
    assert not finder.marked
    assert finder.sample(50.1, busy=False, last_call=2.0, moved=4 * MIB) == Ended(
        time=2.0, moved=4 * MIB
    )


def test_nobody_lends_what_nobody_waits_for() -> None:
    harness = TurnHarness()
    a, b = harness.start("a"), harness.start("b")
    harness.begin(a, 1)
    harness.turn_service.idle(a, messages.Idle(phase=1, lends=True))
    assert harness.take() == []
    harness.begin(b, 1)
    harness.turn_service.idle(a, messages.Idle(phase=7, lends=True))  # not the phase that it is in
    harness.turn_service.idle(b, messages.Idle(phase=1, lends=True))  # has none to lend
    harness.turn_service.idle(a, messages.Idle(phase=1))  # of a version that cannot ask again
    assert harness.take() == []
    harness.turn_service.idle(a, messages.Idle(phase=1, lends=True))
    assert harness.take() == [("a", "Hold", 1), ("b", "Turn", 1)]


def test_a_turn_that_was_lent_counts_as_one_phase_and_no_wait() -> None:
    harness = TurnHarness()
    a, b = harness.start("a"), harness.start("b")
    harness.begin(a, 1)
    harness.begin(b, 1)
    harness.turn_service.idle(a, messages.Idle(phase=1, lends=True))
    harness.take()
    assert harness.begin(a, 1) == [("a", "Hold", 1)]
    assert harness.end(b, 1) == [("a", "Turn", 1)]
    harness.end(a, 1, moved=30)
    record = harness.record("a")
    assert (record.phases, record.phase_bytes) == (1, 30)
    assert sum(harness.turn_service.waits.counts) == 2


def test_a_job_on_several_hosts_that_are_in_its_phase_keeps_its_turn() -> None:
    harness = TurnHarness()
    a, a2, b = harness.start("a", "mpi"), harness.start("a2", "mpi"), harness.start("b")
    for job in (a, a2, b):
        harness.begin(job, 1)
    harness.turn_service.idle(a, messages.Idle(phase=1, lends=True))
    assert harness.take() == []


def test_an_iteration_is_none_the_longer_for_a_turn_that_was_lent() -> None:
    """Phases of 4 s after 6 s of computing; the third lends its turn for 100 s in between."""
    ledger = Ledger(site=Site())
    learnt = Manager(sharing=registry.sharing("exclusive-fcfs"), view=ledger, learn=_live)
    turns = Turns(learnt, ledger)
    turns.started(0.0, Job(id="a", serial=0))
    for k in (0, 1):
        turns.phase_began(6.0 + 10 * k, "a", k + 1)
        turns.phase_ended(10.0 + 10 * k, "a", _ended(k + 1))
    turns.phase_began(26.0, "a", 3)
    turns.yield_turn(28.0, "a")
    turns.phase_began(128.0, "a", 4, resumes=True)
    turns.phase_ended(130.0, "a", _ended(4))
    turns.phase_began(136.0, "a", 5)
    period = learnt.period("a")
    assert period is not None
    assert period.iterations == 3
    assert period.w_iter_ == pytest.approx(10.0)


def _live(_: Job) -> Period:
    return Period.live()


def _ended(phase: int) -> PhaseReport:
    return PhaseReport(number=phase, bytes=400, seconds=4.0, waited=0.0)


def test_the_turn_service_knows_a_phase_that_resumes_by_its_number() -> None:
    harness = TurnHarness()
    events: list[tuple[str, bool]] = []
    harness.turn_service.turns.record = lambda event, *_: events.extend(
        [(event.job, event.resumes)] if isinstance(event, PhaseBegan) else []
    )
    a, b = harness.start("a"), harness.start("b")
    harness.begin(a, 1)
    harness.begin(b, 1)
    harness.turn_service.idle(a, messages.Idle(phase=1, lends=True))
    harness.begin(a, 1)
    harness.end(b, 1)
    harness.end(a, 1)
    harness.begin(a, 2)
    assert events == [("a", False), ("b", False), ("a", True), ("a", False)]
