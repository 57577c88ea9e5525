"""Neighbouring versions work together: what is not known is passed over, the unsaid is as ever."""

import json
import socket
import time
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
    made = StateDirectory(tmp_path / "s")
    config = {"live": {"mode": "enforce", "lease": 0.2}, "sharing": {"policy": "exclusive-fcfs"}}
    told = {"state": str(made.folder), "roots": [str(tmp_path / "data")], "io_nodes": 0}
    launcher.up(msgspec.convert(told | {"config": config}, Deployment))
    yield made
    launcher.down(made)


class Talker:
    """A job's agent of some version: raw lines."""

    def __init__(self, state: StateDirectory) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(WAIT)
        self.socket.connect(str(state.controller))
        self.file = self.socket.makefile("rwb")

    def __enter__(self) -> "Talker":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()

    def say(self, **message: Any) -> None:
        self.file.write(json.dumps(message).encode() + b"\n")
        self.file.flush()

    def hear(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.file.readline())
        return told


BEGIN = {"type": "Begin", "name": "old", "pid": 1, "command": ["x"], "user": "root"}


def test_a_job_of_the_version_before_hears_nothing_that_it_does_not_know(
    state: StateDirectory,
) -> None:
    """Its agent ends at a message that it does not know; several beats fit into the time here."""
    with Talker(state) as old:
        old.say(**BEGIN)
        assert old.hear()["type"] == "Begun"
        time.sleep(0.5)
        old.say(type="Counted", counters={"write_bytes": 5})
        old.say(type="Ended", counters={"write_bytes": 5}, status=0)
        assert old.hear() == {"type": "Done"}


def test_a_job_of_the_next_version_is_understood(state: StateDirectory) -> None:
    """It says more than this controller knows of."""
    with Talker(state) as new:
        new.say(**BEGIN, protocol=99, colour="blue")
        assert new.hear()["mode"] == "enforce"
        new.say(type="PhaseBegan", phase=1, mood="good")
        while (told := new.hear())["type"] == "Beat":
            pass
        assert told["type"] == "Turn"
        new.say(type="Sing", song="a message that there is not yet")
        while (told := new.hear())["type"] == "Beat":
            pass
        assert told["type"] == "Failed"
        new.say(type="PhaseEnded", phase=1, bytes=1, seconds=0.1, waited=0.0)
        status = launcher.ask(state, messages.GetStatus(), messages.Status)
        assert [job.state for job in status.jobs] == ["running"]


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
        {"type": "Counted", "counters": {f"c{k}": 1 for k in range(1000)}},
    ],
)
def test_what_cannot_be_is_refused_and_nobody_else_hears_of_it(
    state: StateDirectory, forged: dict[str, Any]
) -> None:
    """A name goes into ids and logs, counters into what everybody is told."""
    with Talker(state) as job:
        job.say(**(forged if forged["type"] == "Begin" else BEGIN))
        told = job.hear()
        if forged["type"] != "Begin":
            job.say(**forged)
            told = job.hear()
        assert told["type"] == "Failed"
        assert launcher.ask(state, messages.GetStatus(), messages.Status).mode == "enforce"
