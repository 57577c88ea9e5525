"""Neighbouring versions work together: unknown fields are ignored, missing ones have defaults."""

import json
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
from limits import HANG

from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import messages
from penstock.live.protocol.state_directory import StateDirectory

WAIT = HANG


@pytest.fixture
def state(tmp_path: Path) -> Any:
    (tmp_path / "data").mkdir()
    state = StateDirectory(tmp_path / "s")
    config = {"live": {"mode": "enforce", "lease": 0.2}, "sharing": {"policy": "exclusive-fcfs"}}
    options = {"state": str(state.folder), "roots": [str(tmp_path / "data")], "io_nodes": 0}
    launcher.up(msgspec.convert(options | {"config": config}, Deployment))
    yield state
    launcher.down(state)


class RawAgent:
    """The agent of a job in any version: sends and receives raw lines."""

    def __init__(self, state: StateDirectory) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(WAIT)
        self.socket.connect(str(state.controller))
        self.file = self.socket.makefile("rwb")

    def __enter__(self) -> "RawAgent":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()

    def send(self, **message: Any) -> None:
        self.file.write(json.dumps(message).encode() + b"\n")
        self.file.flush()

    def receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.file.readline())
        return message


BEGIN = {"type": "Begin", "name": "old", "pid": 1, "command": ["x"], "user": "root"}


def test_a_job_of_the_previous_version_receives_no_unknown_message(
    state: StateDirectory,
) -> None:
    """Its agent would end at an unknown message: at the heartbeats that newer agents receive."""
    with RawAgent(state) as old, RawAgent(state) as new:
        old.send(**BEGIN)
        assert old.receive()["type"] == "Begun"
        new.send(**BEGIN | {"name": "new"}, protocol=messages.PROTOCOL)
        assert [new.receive()["type"] for _ in range(3)] == ["Begun", "Beat", "Beat"]
        old.send(type="Counted", counters={"write_bytes": 5})
        old.send(type="Ended", counters={"write_bytes": 5}, status=0)
        assert old.receive() == {"type": "Done"}


def test_a_job_of_the_next_version_is_understood(state: StateDirectory) -> None:
    """It sends fields and messages that this controller does not know."""
    with RawAgent(state) as new:
        new.send(**BEGIN, protocol=99, colour="blue")
        assert new.receive()["mode"] == "enforce"
        new.send(type="PhaseBegan", phase=1, mood="good")
        while (answer := new.receive())["type"] == "Beat":
            pass
        assert answer["type"] == "Turn"
        new.send(type="Sing", song="a message of a later version")
        while (answer := new.receive())["type"] == "Beat":
            pass
        assert answer["type"] == "Failed"
        new.send(type="PhaseEnded", phase=1, bytes=1, seconds=0.1, waited=0.0)
        status = launcher.ask(state, messages.GetStatus(), messages.Status)
        assert [job.state for job in status.jobs] == ["running"]


@pytest.mark.security
@pytest.mark.parametrize(
    "forged",
    [
        {**BEGIN, "name": "evil\x1b[2J\nfake"},
        {**BEGIN, "name": ""},
        {**BEGIN, "pid": -1},
        {**BEGIN, "pid": 2**31},
        {"type": "Ended", "counters": {}, "status": -1},
        {"type": "Ended", "counters": {}, "status": 256},
        {"type": "Counted", "counters": {"waited": 10**400}},
        {"type": "Counted", "counters": {"waited": -1}},
        {"type": "PhaseEnded", "phase": 1, "bytes": 2**63, "seconds": 0.1, "waited": 0.0},
        {"type": "Counted", "counters": {f"c{k}": 1 for k in range(1000)}},
    ],
)
def test_an_invalid_message_is_refused_and_affects_no_other_job(
    state: StateDirectory, forged: dict[str, Any]
) -> None:
    """A name goes into ids and logs, counters into totals that everybody sees."""
    with RawAgent(state) as job:
        job.send(**(forged if forged["type"] == "Begin" else BEGIN))
        answer = job.receive()
        if forged["type"] != "Begin":
            job.send(**forged)
            answer = job.receive()
        assert answer["type"] == "Failed"
        assert launcher.ask(state, messages.GetStatus(), messages.Status).mode == "enforce"
