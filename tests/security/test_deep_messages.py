"""A message that is nested too deeply is refused like any other, and fills no log."""

import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from limits import HANG

from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol.hook_messages import AgentDirectory
from penstock.live.protocol.site_key import SiteKey
from penstock.live.protocol.state_directory import StateDirectory

pytestmark = pytest.mark.security
TIMES = 50


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="deep", dir="/dev/shm") as path:
        yield Path(path)


def send(path: Path, message: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(HANG)
        connection.connect(str(path))
        connection.sendall(message + b"\n")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass


def test_the_controller_refuses_it(folder: Path) -> None:
    """Each time its log grew by a traceback: anybody filled the disk with 1 MB per second."""
    (folder / "root").mkdir()
    state = StateDirectory(folder / "state")
    launcher.up(Deployment(state=str(state.folder), roots=[str(folder / "root")], io_nodes=0))
    try:
        for _ in range(TIMES):
            send(state.controller, b'{"type":"Begin","x":' + b"[" * 3000)
        text = state.log.read_text()
        assert "Traceback" not in text
        assert len(text.splitlines()) < TIMES
    finally:
        launcher.down(state)


def test_the_agent_refuses_it(folder: Path) -> None:
    """On the socket that everybody may connect to."""
    key, run = folder / "key", AgentDirectory(folder / "run")
    SiteKey.create(key)
    where = ("--controller", "127.0.0.1:9", "--key-file", str(key), "--run", str(run.path))
    with subprocess.Popen(
        [sys.executable, "-m", "penstock.cli", "agent", *where, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as agent:
        try:
            assert agent.stdout is not None
            assert agent.stdout.readline() == "{\n"
            for _ in range(TIMES):
                send(run.users, b'{"type":"GetUserKey","x":' + b"[" * 3000)
        finally:
            agent.terminate()
            _, text = agent.communicate(timeout=HANG)
    assert "Traceback" not in text
