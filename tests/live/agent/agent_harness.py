"""A job's agent between a controller and a job that do what a test says, on a clock of the test."""

import os
import socket
import struct
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from limits import HANG

from penstock.identities import FileSystemId
from penstock.live.agent.job_agent import JobAgent, Limits
from penstock.live.protocol import _page_layout as layout
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection, encode_line
from penstock.live.protocol.shared_page import SharedPages

LEASE = 60.0
LEND_AFTER = 1.0
LIMITS = Limits(lend_after=LEND_AFTER, sample_interval=0.005, reconnect_interval=0.01)
OFFSETS = {
    "slots": layout.TAKEN,
    "begun": layout.PHASES_BEGUN,
    "ended": layout.PHASES_ENDED,
    "announced": layout.ANNOUNCED,
    "pid": layout.FIRST_SLOT,
    "waiting": layout.FIRST_SLOT + layout.SLOT_FIELDS["waiting"],
    "in_flight": layout.FIRST_SLOT + layout.SLOT_FIELDS["in_flight"],
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

    def __init__(
        self,
        folder: Path,
        roots: Sequence[Path] = (),
        *,
        pages: type[SharedPages] = SharedPages,
        limits: Limits = LIMITS,
    ) -> None:
        """`roots`: on as many file systems."""
        self.clock = Clock()
        self.begin = messages.BeginJob(
            name="a", pid=1, command=["x"], user="ann", protocol=messages.PROTOCOL
        )
        self.accepted = messages.JobAccepted(
            job="a.1", roots=[], nodes=[], mode="enforce", lease=LEASE
        )
        self.pages = pages(
            roots, file_systems=[FileSystemId(k) for k in range(len(roots))], clock_ns=self._now_ns
        )
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
            limits=limits,
            clock=self.clock,
        )

    def _now_ns(self) -> int:
        return round(self.clock.now * 1e9)

    def is_open(self, file_system: int) -> bool:
        """Tell whether the gate of a file system is open, at the time of the clock."""
        at = layout.CLOSED_UNTIL
        if file_system:
            at = layout.OTHER_GATES + (file_system - 1) * layout.GATE_BYTES
        until = int.from_bytes(os.pread(self.pages.control_fd, 8, at), sys.byteorder)
        return until <= self._now_ns()

    def wait_on(self, file_system: int) -> None:
        """A thread of this process waits at the gate of a file system."""
        self.write(slots=1, pid=os.getpid(), waiting=1, in_flight=file_system + 1)

    def move_on(self, file_system: int, written: int) -> None:
        """It has passed, and has written these bytes there, in all."""
        at = layout.MOVED + 8 * file_system
        os.pwrite(self.pages.counters_fd, struct.pack("<Q", written), at)
        self.write(waiting=0, in_flight=0, written=written, last_call=self._now_ns())

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
