"""Every wait for a turn is counted once, by what ended it (counters: docs/live/turns.md)."""

import os
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from limits import HANG
from live.controller.turn_deployment import LEASE, Deployed, deployed
from live.controller.turn_harness import TurnHarness

from penstock.live.protocol import messages
from penstock.live.protocol.job_record import JobRecord
from penstock.live.protocol.messages import COUNTER_INTERVAL
from penstock.live.protocol.state_directory import wait_for_exit
from penstock.records import Record, replay
from penstock.units import show_count

CAUSES = ("failed_open", "gave_up", "lapses", "overdue", "policy_failed")
HTTP = ("--http", "127.0.0.1:0")
BAD = """
from penstock.policies.base import ByArrival
class Bad(ByArrival):
    def group(self, job):
        if job.id.startswith("bad"):
            raise RuntimeError("oops")
        return 1
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Deployed]:
    with deployed(tmp_path) as site:
        yield site


def causes(job: JobRecord) -> dict[str, int]:
    return {cause: n for cause in CAUSES if (n := job.counters.get(cause, 0))}


def throttled(site: Deployed) -> float:
    """Return the seconds of waits in /metrics."""
    with urllib.request.urlopen(
        site.state.http.read_text().strip() + "/metrics", timeout=HANG
    ) as got:
        lines = got.read().decode().splitlines()
    name = "penstock_throttled_seconds_total{"
    return sum(float(line.split()[1]) for line in lines if line.startswith(name))


def test_a_wait_that_ends_with_its_turn_is_no_fail_open(site: Deployed) -> None:
    site.up(*HTTP)
    first, second = site.obedient("first"), site.obedient("second")
    site.held(first, second)
    first.do("end")
    assert second.answer() == "write"
    second.finish()
    record = site.job("second")
    assert causes(record) == {}
    assert record.turn_waited_seconds == pytest.approx(record.counters["turn_waited"] / 1e9)
    assert throttled(site) == pytest.approx(record.turn_waited_seconds, abs=0.05)
    assert record.turn_waited_seconds is not None
    assert record.turn_waited_seconds > 0


def test_a_wait_that_ends_at_max_wait_is_counted_by_the_agent_alone(site: Deployed) -> None:
    """Not by the call that waits at the gate, too."""
    site.up("--set", "live.max-wait=1 s", *HTTP)
    first, second = site.obedient("first"), site.obedient("second")
    site.held(first, second)
    assert second.answer(4.0) == "write"
    second.finish()
    record = site.job("second")
    assert causes(record) == {"overdue": 1}
    assert record.turn_waited_seconds == pytest.approx(1.0, abs=0.6)
    assert throttled(site) == pytest.approx(record.turn_waited_seconds, abs=0.05)


def test_a_wait_for_a_controller_that_is_stopped_is_counted_when_it_goes_on(site: Deployed) -> None:
    site.up(*HTTP)
    first, second = site.obedient("first"), site.obedient("second")
    site.held(first, second)
    controller = site.controller
    os.kill(controller, signal.SIGSTOP)
    try:
        assert second.answer(LEASE + 2.0) == "write"
    finally:
        os.kill(controller, signal.SIGCONT)
    second.finish()
    record = site.until("second", lambda job: job.state == "ended")
    assert causes(record) == {"lapses": 1}
    assert record.turn_waited_seconds is not None
    assert record.turn_waited_seconds > LEASE / 2
    assert throttled(site) == pytest.approx(record.turn_waited_seconds, abs=0.05)


def test_a_wait_for_a_controller_that_is_killed_is_told_to_the_next(site: Deployed) -> None:
    """A phase that begins without a controller has not waited, and transfers without a turn."""
    site.up()
    first, second, third = map(site.obedient, ("first", "second", "third"))
    site.held(first, second)
    killed = os.pidfd_open(site.controller)
    signal.pidfd_send_signal(killed, signal.SIGKILL)
    assert wait_for_exit(killed, 5.0)
    os.close(killed)
    assert second.answer(LEASE + 2.0) == "write"
    third.do("mark")
    third.do("write 4")
    site.up(*HTTP)
    for job in (second, third):
        site.until(job.name, lambda job: job.state == "running")
    third.do("end")
    second.finish()
    third.finish()
    record = site.job("second")
    assert causes(record) == {"lapses": 1}
    assert record.counters["turn_waited"] > 0
    assert causes(site.job("third")) == {"lapses": 1}
    assert site.job("third").counters["turn_waited"] == 0


def test_a_wait_that_the_kill_switch_ends_is_counted_and_no_fail_open(site: Deployed) -> None:
    site.up()
    first, second = site.obedient("first"), site.obedient("second")
    site.held(first, second)
    site.penstock("mode", "off")
    assert second.answer() == "write"
    second.finish()
    record = site.job("second")
    assert causes(record) == {}
    assert record.counters["turn_waited"] > 0


def test_a_phase_that_the_policy_failed_is_not_blamed_on_max_wait(
    site: Deployed, tmp_path: Path
) -> None:
    """Waiting phases continue at once, and every interface reports the failure."""
    (tmp_path / "bad.py").write_text(BAD)
    site.up("--policy", f"{tmp_path}/bad.py:Bad", *HTTP)
    first, second, bad = map(site.obedient, ("first", "second", "bad"))
    site.held(first, second)
    bad.do("write 4")
    assert second.answer() == "write"
    for job in (second, bad):
        job.finish()
        record = site.job(job.name)
        assert causes(record) == {"policy_failed": 1}
        page = site.penstock("explain", str(record.id))
        assert "because the policy failed" in page
        assert "max-wait" not in page
    failures = site.status().policy_failures
    assert failures > 0
    assert "the policy FAILED" in site.penstock("top", "--once", "--interval", "0.1 s")
    assert f"failed {show_count(failures, 'time')} " in site.penstock("status")
    with urllib.request.urlopen(
        site.state.http.read_text().strip() + "/metrics", timeout=HANG
    ) as got:
        assert f"penstock_policy_failures_total {failures:.1f}" in got.read().decode()
    first.finish()
    site.penstock("down")
    (path,) = site.state.records.iterdir()
    assert replay(Record(path), trusted=[f"{tmp_path}/bad.py:Bad"]).first_difference is None


def test_a_phase_that_was_let_go_and_has_its_turn_later_has_waited_once() -> None:
    harness = TurnHarness()
    turn_service, a, b = harness.turn_service, harness.start("a"), harness.start("b")
    harness.begin(a, 1)
    harness.begin(b, 1)
    assert harness.wait(60.0) == [("b", "Turn", 1)]
    assert harness.end(a, 1) == [("b", "Turn", 1)]
    harness.end(b, 1, waited=30.0)
    assert (sum(turn_service.waits.counts), turn_service.waits.seconds) == (2, 30.0)
    assert turn_service.waits.by_user == {"ann": 30.0}


def test_a_job_that_is_lost_while_it_waits_has_waited() -> None:
    harness = TurnHarness()
    a, b = harness.start("a"), harness.start("b")
    harness.begin(a, 1)
    harness.begin(b, 1)
    harness.turn_service.ended(b)
    assert sum(harness.turn_service.waits.counts) == 1


@pytest.mark.parametrize("how", ["has its turn", "was let go", "lent its turn", "was silent"])
def test_a_job_that_is_lost_within_its_phase_has_waited_once(how: str) -> None:
    """For as long as its phase waited until its turn came, or it went on without."""
    harness = TurnHarness(max_wait=10.0 if how == "was let go" else 30.0)
    turn_service, a, b, c = (
        harness.turn_service,
        harness.start("a"),
        harness.start("b"),
        harness.start("c"),
    )
    harness.begin(a, 1)
    harness.begin(b, 1)
    harness.wait(10.0, alive=how != "was silent")
    if how not in {"was let go", "was silent"}:
        harness.end(a, 1)
        if how == "lent its turn":
            harness.begin(c, 1)
            turn_service.idle(b, messages.Idle(phase=1, lends=True))
    counted = sum(turn_service.waits.counts)
    before = turn_service.waits.seconds
    turn_service.ended(b)
    assert sum(turn_service.waits.counts) == counted + 1
    assert turn_service.waits.seconds - before == pytest.approx(10.0)


def test_a_host_that_is_lost_last_of_its_job_has_waited() -> None:
    harness = TurnHarness()
    a, b, b2 = harness.start("a"), harness.start("b", "mpi"), harness.start("b2", "mpi")
    harness.begin(a, 1)
    harness.begin(b2, 1)
    harness.wait(10.0)
    harness.turn_service.ended(b2)
    assert harness.turn_service.waits.seconds == pytest.approx(10.0)
    harness.turn_service.ended(b)
    assert sum(harness.turn_service.waits.counts) == 1


@pytest.mark.parametrize("lease", [0.5, 2.0, 10.0])
def test_a_phase_whose_gate_may_still_be_closed_is_not_cut(lease: float) -> None:
    """An agent harness a beat just before it fell silent, and spoke last up to a second before."""
    harness = TurnHarness(lease=lease)
    a, b = harness.start("a"), harness.start("b")
    harness.begin(a, 1)
    harness.begin(b, 1)
    spoke = harness.turn_service.turns.states["b"].last_report
    gate_opens = spoke + COUNTER_INTERVAL + lease
    assert harness.turn_service.turns.suspend_silent(gate_opens, harness.turn_service.silence) == []
    assert (
        harness.turn_service.turns.suspend_silent(gate_opens + 3.0, harness.turn_service.silence)
        != []
    )


@pytest.mark.parametrize("lie", [-1.0, 1e300])
def test_a_job_that_lies_about_its_wait_spoils_no_total(lie: float) -> None:
    harness = TurnHarness()
    a = harness.start("a")
    harness.begin(a, 1)
    harness.turn_service.phase_ended(
        a, messages.PhaseEnded(phase=1, bytes=1, seconds=1.0, waited=lie)
    )
    assert 0 <= harness.turn_service.waits.seconds <= 62
