"""A deployment that somebody stands by outlives its controllers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from limits import HANG

from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.state_directory import StateDirectory, lock_holder

PENSTOCK = (sys.executable, "-m", "penstock.cli")
WITHIN = HANG


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    state = StateDirectory(tmp_path / "s")
    (tmp_path / "data").mkdir()
    up = ("up", "--root", str(tmp_path / "data"), "--io-nodes", "1")
    subprocess.run([*PENSTOCK, *up, "--state", str(state.folder)], check=True, timeout=60)
    try:
        yield state
    finally:
        launcher.down(state)


@contextmanager
def standing_by(state: StateDirectory) -> Iterator["subprocess.Popen[str]"]:
    command = [*PENSTOCK, "standby", "--state", str(state.folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as standby:
        try:
            assert standby.stdout is not None
            standby.stdout.readline()  # it stands by, or has ended
            yield standby
        finally:
            standby.kill()  # a failed assertion must not wait for it


def test_another_controller_serves_the_same_when_one_is_killed(
    state: StateDirectory, tmp_path: Path
) -> None:
    with standing_by(state) as standby:
        first = lock_holder(state.lock)
        assert first
        os.kill(first, signal.SIGKILL)
        assert standby.stdout is not None
        assert "another one serves" in standby.stdout.readline()
        second = lock_holder(state.lock)
        assert second not in {None, first}
        site_status = launcher.ask(state, messages.GetStatus(), messages.Status)
        assert site_status.roots == [str((tmp_path / "data").resolve())]
        assert [node.state for node in site_status.io_nodes] == ["serving"]
        launcher.down(state)
        assert standby.wait(WITHIN) == 0


def test_it_ends_with_the_deployment(state: StateDirectory) -> None:
    with standing_by(state) as standby:
        launcher.down(state)
        assert standby.wait(WITHIN) == 0
    assert not state.is_up()


def test_there_must_be_something_to_stand_by(tmp_path: Path) -> None:
    with standing_by(StateDirectory(tmp_path / "none")) as standby:
        assert standby.wait(WITHIN) == 2
        assert standby.stderr is not None
        assert "nothing is up" in standby.stderr.read()


def test_standby_gives_up_if_the_controller_dies_again_and_again(state: StateDirectory) -> None:
    killed = []

    def kill(message: str) -> None:
        if message.startswith("standing by"):
            return
        pid = lock_holder(state.lock)
        assert pid
        killed.append(pid)
        os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + WITHIN
        while lock_holder(state.lock) == pid:
            assert time.monotonic() < until
            time.sleep(0.01)

    kill("")
    with pytest.raises(launcher.LaunchError, match="died 2 times"):
        launcher.stand_by(state, kill, max_takeovers=2)
    assert len(killed) == 3
