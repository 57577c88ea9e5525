"""What a job's agent reports to a controller of phases whose end, or turn, came in another way."""

import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from limits import HANG

from penstock.live.agent.job_agent import JobAgent, Limits
from penstock.live.protocol import _page_layout as layout
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection, encode_line
from penstock.live.protocol.shared_page import SharedPages

LEASE = 60.0
LEND_AFTER = 1.0
OFFSETS = {
    "slots": layout.TAKEN,
    "begun": layout.PHASES_BEGUN,
    "ended": layout.PHASES_ENDED,
    "announced": layout.ANNOUNCED,
    "pid": layout.FIRST_SLOT,
    "waiting": layout.FIRST_SLOT + layout.SLOT_FIELDS["waiting"],
    "last_call": layout.FIRST_SLOT + layout.SLOT_FIELDS["last_call"],
    "written": layout.FIRST_SLOT + layout.SLOT_FIELDS["write_bytes"],
    "reads": layout.FIRST_SLOT + layout.SLOT_FIELDS["reads"],
    "node_bytes": layout.NODE_BYTES,
}


class Clock:
    """A clock that moves only when a test moves it; a stopped clock stops those who read it."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._changed = threading.Condition()
        self._stopped = False
        self._blocked = 0

    def __call__(self) -> float:
        with self._changed:
            self._blocked += 1
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: not self._stopped, HANG)
            self._blocked -= 1
            return self._now

    @property
    def now(self) -> float:
        """The time, also while the clock is stopped."""
        return self._now

    def advance(self, seconds: float) -> None:
        with self._changed:
            self._now += seconds

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Hold whoever reads the clock, from the next reader on until the block ends."""
        with self._changed:
            self._stopped = True
            assert self._changed.wait_for(lambda: self._blocked > 0, HANG)
        yield
        with self._changed:
            self._stopped = False
            self._changed.notify_all()


class Harness:
    """An agent between a controller and a job that do what a test says."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.begin = messages.BeginJob(
            name="a", pid=1, command=["x"], user="ann", protocol=messages.PROTOCOL
        )
        self.accepted = messages.JobAccepted(
            job="a.1", roots=[], nodes=[], mode="enforce", lease=LEASE
        )
        self.pages = SharedPages([])
        self._path = folder / "controller.sock"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen()
        self._listener.settimeout(HANG)
        self._connections: list[ControlConnection] = []
        self._maps = 0
        connection = self._connect()
        self.accept()
        self.agent = JobAgent(
            connection,
            self.begin,
            self.accepted,
            self.pages,
            self._connect,
            limits=Limits(lend_after=LEND_AFTER, sample_interval=0.005, reconnect_interval=0.01),
            clock=self.clock,
        )

    def _connect(self) -> ControlConnection:
        self._connections.append(ControlConnection(self._path))
        return self._connections[-1]

    def accept(self) -> None:
        self._socket, _ = self._listener.accept()
        self._socket.settimeout(HANG)
        self._lines = self._socket.makefile("rb")

    def disconnect(self) -> None:
        self._lines.close()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def send(self, message: messages.Message) -> None:
        self._socket.sendall(encode_line(message))

    def receive(self, kind: type[Any], *, never: type[Any] | None = None) -> Any:
        """Return the next message of a kind; any other may come before it, but for `never`."""
        kinds = (
            messages.PhaseBegan
            | messages.PhaseEnded
            | messages.JobCounters
            | messages.Idle
            | messages.JobExit
        )
        while True:
            message = msgspec.json.decode(self._lines.readline(), type=kinds | messages.BeginJob)
            if isinstance(message, kind):
                return message
            assert never is None or not isinstance(message, never)

    def synchronise(self, *, never: type[Any] | None = None) -> None:
        """Wait until the agent has handled all messages, and has sampled the job since."""
        self._maps += 1
        self.send(messages.NodeMap(nodes=[]))
        while self.receive(messages.JobCounters, never=never).counters["maps"] < self._maps:
            pass
        with self.clock.stopped():
            pass

    def write(self, **words: int) -> None:
        """Write to the job's counters, as its processes do."""
        for name, value in words.items():
            os.pwrite(self.pages.counters_fd, struct.pack("<Q", value), OFFSETS[name])
        self.pages.wake()

    def close(self) -> None:
        self._listener.close()
        self.disconnect()
        self.agent.end(0)
        for connection in self._connections:
            connection.close()
        self.pages.close()


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
