"""State files are their user's alone, whatever the umask, and what standby runs is that user's."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from limits import HANG
from live.other_users import AS_ROOT, NOBODY, as_nobody

from penstock.errors import InputError
from penstock.live.deployment import launcher
from penstock.live.protocol.state_directory import StateDirectory

PENSTOCK = (sys.executable, "-P", "-m", "penstock.cli")
FOR_USERS = {"io-node-0.sock", "controller.sock"}
"""With --all-users open to everybody: the peer's identity decides."""

pytestmark = pytest.mark.security


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    state = StateDirectory(tmp_path / "s")
    (tmp_path / "data").mkdir()
    yield state
    launcher.down(state)


def up(state: StateDirectory, umask: int) -> None:
    data = state.folder.parent / "data"
    command = ["up", "--root", str(data), "--io-nodes", "1", "--http", "0"]
    if os.geteuid() == 0:
        command.append("--all-users")  # the state directory may be searched by everybody: 0711
    where = ["--state", str(state.folder)]
    subprocess.run([*PENSTOCK, *command, *where], check=True, timeout=HANG, umask=umask)
    job = ["run", *where, "--", "sh", "-c", f"echo x > {data}/file; ls -l {state.folder}"]
    subprocess.run([*PENSTOCK, *job], check=True, timeout=HANG, umask=umask)


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_state_files_are_their_users_alone(state: StateDirectory, umask: int) -> None:
    state.create()
    state.log.write_text("of an earlier version, with the umask of then\n")
    state.log.chmod(0o666)
    up(state, umask)
    open_to_others = {
        path.relative_to(state.folder).as_posix(): oct(stat.S_IMODE(status.st_mode))
        for path in state.folder.rglob("*")
        if path.name not in FOR_USERS
        and not stat.S_ISDIR((status := path.lstat()).st_mode)
        and status.st_mode & 0o077
    }
    assert not open_to_others
    assert {"deployment.json", "controller.log", "store.db"} <= {
        path.name for path in state.folder.iterdir()
    }


@AS_ROOT
def test_strangers_read_no_state(state: StateDirectory) -> None:
    up(state, 0o000)

    def readable() -> list[str]:
        return [name for name in ("deployment.json", "controller.log") if can_open(name)]

    def can_open(name: str) -> bool:
        try:
            (state.folder / name).open("ab").close()
        except PermissionError:
            return False
        return True

    for folder in (state.folder.parent, *state.folder.parent.parents):
        if folder.name.startswith("pytest"):
            folder.chmod(0o711)
    assert stat.S_IMODE(state.folder.stat().st_mode) == 0o711
    assert as_nobody(readable) == "[]"


def widen(path: Path) -> None:
    path.chmod(0o606)


def give_to_nobody(path: Path) -> None:
    os.chown(path, NOBODY, -1)


@pytest.mark.parametrize("change", [widen, pytest.param(give_to_nobody, marks=AS_ROOT)])
def test_standby_runs_nothing_that_others_may_have_written(
    state: StateDirectory, change: Callable[[Path], None]
) -> None:
    up(state, 0o022)
    planted = msgspec.json.decode(state.deployment.read_bytes())
    proof = state.folder.parent / "proof"
    planted["io_node"] = ["touch", str(proof)]
    launcher.down(state)
    state.deployment.write_bytes(msgspec.json.encode(planted))
    change(state.deployment)
    with pytest.raises(InputError, match=r"deployment\.json (belongs to|can be written by)"):
        launcher.stand_by(state)
    assert not proof.exists()
    state.deployment.unlink()


def test_standby_refuses_a_directory_that_others_write(state: StateDirectory) -> None:
    up(state, 0o022)
    state.folder.chmod(0o777)
    with pytest.raises(InputError, match="can be written to by others"):
        launcher.stand_by(state)
    state.folder.chmod(0o700)
