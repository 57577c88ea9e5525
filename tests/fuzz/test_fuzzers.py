"""Some thousand odd inputs of each kind that are the same each time; `make fuzz` tries others."""

import socket
from pathlib import Path
from random import Random

import pytest
from fuzz import control, counters, http_bytes, io_nodes
from fuzz.odd import Odd
from limits import HANG
from live.controller.turn_deployment import deployed

from penstock import cli
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import messages
from penstock.printable import is_printable

pytestmark = pytest.mark.security


def test_control_messages() -> None:
    control.fuzz(3000, 1)


def test_counters(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """And what 'status' and 'explain' print of them moves no terminal."""

    def show(status: messages.Status) -> None:
        monkeypatch.setattr(launcher, "ask", lambda *_: status)
        for verb in (["status"], ["explain", status.jobs[0].id], ["status", "--json"]):
            assert cli.main(verb) == 0
        out, err = capsys.readouterr()
        assert all(map(is_printable, (out + err).split("\n")))

    counters.fuzz(3000, 1, show)


def test_http() -> None:
    http_bytes.fuzz(1000, 1)


def test_io_nodes() -> None:
    io_nodes.fuzz(8, 1)


def test_a_controller_in_a_process_of_its_own(tmp_path: Path) -> None:
    odd = Odd(Random(2))
    with deployed(tmp_path) as site:
        launcher.up(Deployment(state=str(site.state.folder), roots=[str(site.root)], io_nodes=0))
        pid = site.controller
        for _ in range(300):
            several = (odd.line(odd.random.choice(control.CLIENTS)) for _ in range(4))
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(HANG)
                connection.connect(str(site.state.controller))
                connection.sendall(b"".join(several))
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):
                    pass
        assert site.status().jobs is not None
        assert site.controller == pid
        assert b"Traceback" not in site.state.log.read_bytes()
