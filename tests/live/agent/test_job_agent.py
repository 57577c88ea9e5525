"""What a job's agent reports to a controller of phases whose end, or turn, came in another way."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from live.agent.agent_harness import LEASE, LEND_AFTER, Harness

from penstock.live.protocol import messages


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Harness]:
    job = Harness(tmp_path)
    yield job
    job.close()


@pytest.mark.parametrize("begin", ["sampled", "missed"])
def test_a_phase_that_passed_an_expired_gate_while_its_agent_was_stopped_is_counted(
    job: Harness, begin: str
) -> None:
    """Its end, and perhaps its beginning, is the first thing that the agent sees afterwards."""
    if begin == "sampled":
        job.write(begun=1)
        job.receive(messages.PhaseBegan)
    with job.clock.stopped():
        job.clock.advance(2 * LEASE)
        job.write(begun=1, ended=1)
    over = job.receive(messages.PhaseEnded)
    assert job.agent.counters()["lapses"] == 1
    assert over.waited <= LEASE


def test_the_wait_of_a_lapse_ends_when_the_gate_opened(job: Harness) -> None:
    """Not when a stopped agent continues: its job had continued long before."""
    job.write(begun=1)
    job.receive(messages.PhaseBegan)
    with job.clock.stopped():
        job.clock.advance(3 * LEASE)
        job.write(ended=1)
    assert job.receive(messages.PhaseEnded).waited == pytest.approx(LEASE)


def test_a_phase_that_was_over_when_it_was_noticed_lasted_longer_than_nothing(job: Harness) -> None:
    """A sample shows 100 MiB of calls that are over: they began after the sample before."""
    job.send(messages.Heartbeat(mode="observe"))
    job.synchronise()
    with job.clock.stopped():
        job.clock.advance(0.05)
        last = round((job.clock.now - 0.01) * 1e9)
        job.write(slots=1, pid=os.getpid(), written=100 << 20, last_call=last)
    job.receive(messages.PhaseBegan)
    job.clock.advance(10.0)
    over = job.receive(messages.PhaseEnded)
    assert over.bytes == 100 << 20
    assert over.seconds == pytest.approx(0.04 / 2), "in the middle of what is possible"


def test_the_announced_volume_of_a_phase_is_sent_with_every_request(job: Harness) -> None:
    """After its turn was lent, and to the next controller."""
    job.write(announced=1000)
    job.write(begun=1)
    assert job.receive(messages.PhaseBegan).bytes == 1000
    job.send(messages.Turn(phase=1))
    job.synchronise()
    job.clock.advance(10 * LEND_AFTER)
    assert job.receive(messages.Idle).lends
    job.send(messages.Hold(phase=1, turn_lent=True))
    job.synchronise()
    job.write(slots=1, pid=os.getpid(), waiting=1)
    assert job.receive(messages.PhaseBegan).bytes == 1000
    job.disconnect()
    job.accept()
    assert job.receive(messages.BeginJob).resumes == "a.1"
    job.send(job.accepted)
    assert job.receive(messages.PhaseBegan).bytes == 1000


def test_a_turn_that_came_late_is_not_lent_before_it_can_be_used(job: Harness) -> None:
    job.write(begun=1)
    job.receive(messages.PhaseBegan)
    job.clock.advance(10 * LEND_AFTER)  # it waits for its turn, and so makes no call
    job.send(messages.Turn(phase=1))
    job.synchronise(never=messages.Idle)
    job.clock.advance(0.9 * LEND_AFTER)
    job.synchronise(never=messages.Idle)
    job.synchronise(never=messages.Idle)
    job.clock.advance(10 * LEND_AFTER)
    assert job.receive(messages.Idle).lends


def test_counters_that_no_job_can_reach_are_bounded_counted_and_reported(
    job: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    """A job may write anything into its page; the controller refused the whole report."""
    job.write(slots=1, pid=1, written=2**64 - 1, reads=7, node_bytes=2**63)
    for _ in range(2):
        job.send(messages.NodeMap(nodes=[]))
        report = job.receive(messages.JobCounters)  # decoded with the controller's bounds
    assert report.counters["implausible"] == 2
    largest = 2**63 - 1
    assert report.counters["write_bytes"] == largest
    assert report.counters["reads"] == 7
    assert report.usage.io_nodes == {"0": largest}
    logged = [each.getMessage() for each in caplog.records if "counters" in each.getMessage()]
    assert len(logged) == 1, "once, not with every report"
    assert "wrote impossible values into 2 of its counters" in logged[0]


def test_plausible_counters_are_reported_without_remark(job: Harness) -> None:
    job.write(slots=1, pid=1, written=2**63 - 1)
    job.send(messages.NodeMap(nodes=[]))
    report = job.receive(messages.JobCounters)
    assert report.counters["write_bytes"] == 2**63 - 1
    assert report.counters["implausible"] == 0
