"""Wrong input is exit status 2 and one line, also where the controller finds it."""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from live.other_users import AS_ROOT, NOBODY, as_user

from penstock.live.deployment import launcher
from penstock.live.protocol.state_directory import StateDirectory


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "data").mkdir()
    return str(tmp_path / "data")


@pytest.mark.parametrize("content", [b"no database" * 1000, b""])
def test_a_damaged_store(penstock: Any, tmp_path: Path, root: str, content: bytes) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    (state / "store.db").write_bytes(content)
    result = penstock("up", "--root", root, "--io-nodes", "0", "--state", str(state))
    assert result.status == 2
    assert "damaged" in result.err
    assert len(result.err.splitlines()) == 1
    assert not StateDirectory(state).is_up()


@pytest.mark.parametrize("setting", ["live.keep-records=1 s", "live.lease=0"])
def test_a_setting_that_cannot_be(penstock: Any, tmp_path: Path, root: str, setting: str) -> None:
    up = ("up", "--root", root, "--io-nodes", "0", "--state", str(tmp_path / "state"))
    result = penstock(*up, "--set", setting)
    assert (result.status, setting.partition("=")[0] in result.err) == (2, True)


def test_a_policy_file_that_is_not_there(penstock: Any, tmp_path: Path, root: str) -> None:
    up = ("up", "--root", root, "--io-nodes", "0", "--state", str(tmp_path / "state"))
    result = penstock(*up, "--policy", str(tmp_path / "none.py:None"))
    assert (result.status, "none.py" in result.err) == (2, True)


@pytest.mark.security
@AS_ROOT
def test_a_state_directory_that_is_read_only() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        Path(place).chmod(0o755)
        folder = Path(place) / "state"
        folder.mkdir(mode=0o500)
        os.chown(folder, NOBODY, NOBODY)
        message = as_user(NOBODY, StateDirectory(folder).create)
    assert message.startswith("InputError")
    assert "cannot be written to" in message


def test_a_user_that_nobody_knows(penstock: Any, tmp_path: Path, root: str) -> None:
    state = str(tmp_path / "state")
    assert penstock("up", "--root", root, "--io-nodes", "0", "--state", state).status == 0
    try:
        result = penstock("mode", "enforce", "--user", "nosuchuser", "--state", state)
        assert (result.status, "no user 'nosuchuser'" in result.err) == (2, True)
        me = penstock("mode", "enforce", "--user", str(os.getuid()), "--state", state, "--json")
        assert list(me.json["users"].values()) == ["enforce"]
        user = next(iter(me.json["users"]))
        cleared = penstock("mode", "default", "--user", user, "--state", state, "--json")
        assert cleared.json["users"] == {}
    finally:
        launcher.down(StateDirectory(Path(state)))
