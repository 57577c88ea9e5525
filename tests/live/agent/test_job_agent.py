"""What a job's agent tells a controller of phases whose end, or turn, came another way."""

import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from limits import HANG

from penstock.live.agent.job_agent import LENT_AFTER, Member
from penstock.live.protocol import _page_layout as layout
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection, encode_line
from penstock.live.protocol.shared_page import SharedPages

WAIT = HANG
LEASE = 60.0
TAKEN, FIRST_SLOT, ANNOUNCED = layout.TAKEN, layout.FIRST_SLOT, layout.ANNOUNCED
BEGUN, ENDED = layout.PHASES_BEGUN, layout.PHASES_ENDED
WAITING = FIRST_SLOT + layout.SLOT_FIELDS["waiting"]


class Told:
    """A controller that says what a test wants, to an agent whose job does what a test wants."""

    def __init__(self, folder: Path) -> None:
        self.begin = messages.BeginJob(
            name="a", pid=1, command=["x"], user="ann", protocol=messages.PROTOCOL
        )
        self.begun = messages.JobAccepted(
            job="a.1", roots=[], nodes=[], mode="enforce", lease=LEASE
        )
        self.pages = SharedPages([])
        self._path = folder / "controller.sock"
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(self._path))
        self._door.listen()
        self._door.settimeout(WAIT)
        self._channels: list[ControlConnection] = []
        channel = self._connect()
        self.accept()
        self.member = Member(channel, self.begin, self.begun, self.pages, self._connect)

    def _connect(self) -> ControlConnection:
        self._channels.append(ControlConnection(self._path))
        return self._channels[-1]

    def accept(self) -> None:
        self._connection, _ = self._door.accept()
        self._connection.settimeout(WAIT)
        self._lines = self._connection.makefile("rb")

    def hang_up(self) -> None:
        self._lines.close()
        self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def say(self, message: messages.Message) -> None:
        self._connection.sendall(encode_line(message))

    def hear(self, kind: type[Any]) -> Any:
        """Return the next message of a kind, whatever comes before it."""
        known = (
            messages.PhaseBegan
            | messages.PhaseEnded
            | messages.JobCounters
            | messages.Idle
            | messages.JobExit
        )
        while True:
            message = msgspec.json.decode(self._lines.readline(), type=known | messages.BeginJob)
            if isinstance(message, kind):
                return message

    def set(self, **words: int) -> None:
        """Write to the job's counters, as its processes do."""
        offsets = {"taken": TAKEN, "begun": BEGUN, "ended": ENDED, "announced": ANNOUNCED}
        offsets |= {"pid": FIRST_SLOT, "waiting": WAITING}
        for name, value in words.items():
            os.pwrite(self.pages.counters_fd, struct.pack("<Q", value), offsets[name])
        self.pages.wake()

    def end(self) -> None:
        self._door.close()
        self.hang_up()
        self.member.end(0)
        for channel in self._channels:
            channel.close()
        self.pages.close()


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    told = Told(tmp_path)
    yield told
    told.end()


@pytest.mark.parametrize("seen", ["begun", "unseen"])
def test_a_phase_that_passed_an_expired_gate_while_its_agent_was_stopped_is_counted(
    told: Told, seen: str
) -> None:
    """Its end, and perhaps its beginning, is the first thing that it sees when it goes on."""
    if seen == "begun":
        told.set(begun=1)
        told.hear(messages.PhaseBegan)
    with told.member._lock:  # as good as stopped
        told.member._beaten -= 2 * LEASE
        told.set(begun=1, ended=1)
    over = told.hear(messages.PhaseEnded)
    assert told.member.counters()["lapses"] == 1
    assert over.waited < LEASE


def test_the_wait_of_a_lapse_ends_when_the_gate_opened(told: Told) -> None:
    """Not when a stopped agent goes on: its job had long gone on by then."""
    told.set(begun=1)
    told.hear(messages.PhaseBegan)
    with told.member._lock:
        phase = told.member._phase
        assert phase is not None
        phase.asked = time.monotonic() - 3 * LEASE
        told.member._beaten = phase.asked
        told.set(ended=1)
    assert told.hear(messages.PhaseEnded).waited == pytest.approx(LEASE)


def test_what_a_phase_announced_is_told_again_with_it(told: Told) -> None:
    """After its turn was lent, and to the next controller."""
    told.set(announced=1000)
    told.set(begun=1)
    assert told.hear(messages.PhaseBegan).bytes == 1000
    told.say(messages.Turn(phase=1))
    assert told.hear(messages.Idle).lends
    told.say(messages.Hold(phase=1, turn_lent=True))
    told.set(taken=1, pid=os.getpid(), waiting=1)
    assert told.hear(messages.PhaseBegan).bytes == 1000
    told.hang_up()
    told.accept()
    assert told.hear(messages.BeginJob).resumes == "a.1"
    told.say(told.begun)
    assert told.hear(messages.PhaseBegan).bytes == 1000


@pytest.mark.timed
def test_a_turn_that_came_late_is_not_lent_before_it_can_be_used(told: Told) -> None:
    told.set(begun=1)
    told.hear(messages.PhaseBegan)
    with told.member._lock:
        told.member._watched._called -= 10 * LENT_AFTER  # it has waited since then
    given = time.monotonic()
    told.say(messages.Turn(phase=1))
    assert told.hear(messages.Idle).lends
    assert time.monotonic() - given >= LENT_AFTER
