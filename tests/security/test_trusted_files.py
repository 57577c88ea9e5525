"""Configuration and policies are taken from the caller and root alone: as a hostile neighbour."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from live.other_users import AS_ROOT, NOBODY, as_user

from penstock import config, registry, trusted_files
from penstock.errors import InputError

STRANGER = 12345
POLICY = """
from pathlib import Path
from penstock.policies.sharing.fair_share import FairShare

Path({proof!r}).touch()


class Evil(FairShare):
    pass
"""
CONFIGURATION = '[sharing]\npolicy = "evil.py:Evil"\n'

pytestmark = pytest.mark.security


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The working directory, of a path that strangers may search."""
    folder = tmp_path / "w"
    folder.mkdir(mode=0o755)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PENSTOCK_CONFIG", raising=False)
    return folder


@pytest.fixture
def proof(directory: Path, tmp_path: Path) -> Path:
    """A policy and a configuration that names it; the policy leaves this file where it runs."""
    path = tmp_path / "proof"
    for name, text in (
        ("evil.py", POLICY.format(proof=str(path))),
        ("penstock.toml", CONFIGURATION),
    ):
        (directory / name).write_text(text)
        (directory / name).chmod(0o644)
    return path


def penstock(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", "-m", "penstock.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_what_is_the_callers_own_is_taken_and_its_code_named(proof: Path) -> None:
    shown = penstock("config", "show")
    assert shown.returncode == 0, shown.stderr
    assert "runs the code of evil.py:Evil (penstock.toml)" in shown.stderr
    assert proof.exists()


@AS_ROOT
@pytest.mark.parametrize("verb", [["config", "show"], ["compare", "x.json"], ["what-if", "x"]])
def test_a_strangers_directory_runs_nothing(directory: Path, proof: Path, verb: list[str]) -> None:
    for path in (directory, *directory.iterdir()):
        os.chown(path, STRANGER, STRANGER)
    ran = penstock(*verb)
    assert not proof.exists()
    assert "belongs to user 12345" in ran.stderr
    assert "passed over" in ran.stderr


@AS_ROOT
def test_a_strangers_file_does_not_make_commands_useless(directory: Path, proof: Path) -> None:
    directory.chmod(0o1777)  # as /tmp
    os.chown(directory / "penstock.toml", STRANGER, STRANGER)
    assert penstock("config", "show").returncode == 0
    started = penstock("up", "--root", str(directory), "--io-nodes", "0", "--state", "s")
    assert started.returncode == 2
    assert "penstock.toml belongs to user 12345" in started.stderr
    assert not (directory / "s").exists()
    assert not proof.exists()


def group_writable(path: Path) -> None:
    os.chown(path, -1, NOBODY)
    path.chmod(0o664)


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "another user's": (lambda path: os.chown(path, STRANGER, -1), "belongs to user 12345"),
    "written by all": (lambda path: path.chmod(0o666), "can be written by every user"),
    "written by a group": (group_writable, "can be written by its group"),
}


@AS_ROOT
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["evil.py", "absolute"])
def test_a_policy_that_others_decide_is_not_run(
    directory: Path, proof: Path, change: str, name: str
) -> None:
    file = directory / "evil.py"
    act, problem = CHANGES[change]
    act(file)
    named = str(file) if name == "absolute" else name
    with pytest.raises(InputError, match=problem):
        registry.load("sharing", f"{named}:Evil")
    assert not proof.exists()


@AS_ROOT
@pytest.mark.parametrize("change", CHANGES)
def test_a_configuration_that_others_decide_is_not_read(
    directory: Path, proof: Path, change: str
) -> None:
    act, problem = CHANGES[change]
    act(directory / "penstock.toml")
    for named in ("penstock.toml", str(directory / "penstock.toml")):
        with pytest.raises(InputError, match=problem):
            config.load(named)
        with pytest.raises(InputError, match=problem):
            config.load(environment={"PENSTOCK_CONFIG": named})


def test_files_of_ones_own_that_others_write_stop_every_verb(directory: Path, proof: Path) -> None:
    (directory / "penstock.toml").chmod(0o646)
    with pytest.raises(InputError, match="chmod go-w"):
        config.load(environment={})


@AS_ROOT
@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.chmod(0o777),
        lambda path: os.chown(path, STRANGER, -1),
        lambda path: path.parent.chmod(0o757),
        lambda path: os.chown(path.parent, STRANGER, -1),
    ],
)
def test_who_can_rename_a_directory_cannot_place_a_file(
    directory: Path, proof: Path, change: Callable[[Path], object]
) -> None:
    change(directory)
    for load in (
        lambda: config.load(environment={}),
        lambda: registry.load("sharing", "evil.py:Evil"),
    ):
        with pytest.raises(InputError, match=f"directory {directory.parent}.* exchange the file"):
            load()
    assert not proof.exists()
    # An absolute name is a choice: the file itself is the caller's own, and nobody else's.
    registry.load("sharing", f"{directory}/evil.py:Evil")
    assert proof.exists()


@AS_ROOT
def test_a_sticky_directory_is_no_danger_but_a_strangers_link_in_it_is(
    directory: Path, proof: Path
) -> None:
    directory.chmod(0o1777)
    assert config.load(environment={}).config.sharing.policy == "evil.py:Evil"
    (directory / "evil.py").rename(directory / "mine.py")
    (directory / "evil.py").symlink_to(directory / "mine.py")
    assert trusted_files.read(Path("evil.py"))
    os.chown(directory / "evil.py", STRANGER, STRANGER, follow_symlinks=False)
    with pytest.raises(InputError, match=r"the link .* belongs to user 12345"):
        registry.load("sharing", "evil.py:Evil")


@AS_ROOT
def test_a_link_leads_through_directories_that_are_looked_at(directory: Path) -> None:
    strangers = directory / "theirs"
    strangers.mkdir()
    (strangers / "policy.toml").write_text("")
    (directory / "way").symlink_to("theirs/../theirs")
    os.chown(strangers, STRANGER, STRANGER)
    with pytest.raises(InputError, match=r"directory .*/theirs belongs to"):
        trusted_files.read(Path("way/policy.toml"))


def test_compiled_code_beside_a_policy_is_not_run(directory: Path, proof: Path) -> None:
    """A .pyc is taken for the source where size and time agree, which its writer can arrange."""
    file = directory / "evil.py"
    script = f"import importlib.util as u; s = u.spec_from_file_location('e', {str(file)!r}); "
    script += "m = u.module_from_spec(s); s.loader.exec_module(m)"
    subprocess.run([sys.executable, "-c", script], check=True, env={})
    assert proof.exists(), "the interpreter wrote no code"
    assert list((directory / "__pycache__").iterdir())
    proof.unlink()
    before, text = file.stat(), file.read_text()
    file.write_text(text.replace("Path(", "len (").replace(".touch()", "        "))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    registry.load("sharing", "evil.py:Evil")
    assert not proof.exists()


@AS_ROOT
def test_users_take_what_is_roots() -> None:
    """As /etc/penstock/penstock.toml is."""

    def load() -> object:
        return len(trusted_files.read(Path("/etc/passwd"), searched=True)) > 0

    assert as_user(NOBODY, load) == "True"
