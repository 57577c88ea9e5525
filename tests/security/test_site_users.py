"""Users of a site without Slurm: they run own jobs through its deployment, and do nothing else."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from limits import HANG
from live.other_users import AS_ROOT, command_as

pytestmark = [pytest.mark.security, AS_ROOT]

PENSTOCK = (sys.executable, "-P", "-m", "penstock.cli")
OWNER, ALICE, BOB = "daemon", "nobody", "games"
"""Ordinary users that every system has: whose the deployment is, and two others."""


class Site:
    """A deployment of an ordinary user; `--all-users` opens it to others."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.data, self.state = folder, folder / "data", folder / "state"
        folder.chmod(0o755)
        for path, mode in ((self.data, 0o1777), (self.state, 0o700)):
            path.mkdir()
            path.chmod(mode)
        subprocess.run(["chown", OWNER, str(self.state)], check=True)
        self.homes: dict[str, Path] = {}
        for user in (OWNER, ALICE, BOB):
            self.homes[user] = folder / user
            self.homes[user].mkdir(mode=0o700)
            subprocess.run(["chown", user, str(self.homes[user])], check=True)
        where = ("--root", str(self.data), "--state", str(self.state))
        done = self.run(OWNER, *PENSTOCK, "up", *where, "--io-nodes", "1", *options)
        assert done.returncode == 0, done.stderr

    def run(self, user: str, *command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command_as(user, *command),
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
            cwd=self.data,
            env=os.environ | {"XDG_RUNTIME_DIR": str(self.homes[user])},
        )

    def penstock(self, user: str, verb: str, *words: str) -> "subprocess.CompletedProcess[str]":
        return self.run(user, *PENSTOCK, verb, "--state", str(self.state), *words)

    def status(self, user: str) -> Any:
        done = self.penstock(user, "status", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def down(self) -> None:
        done = self.penstock(OWNER, "down")
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="site", dir="/dev/shm") as path:
        made = Site(Path(path), "--all-users")
        yield made
        made.down()


def write(name: str) -> tuple[str, ...]:
    return ("--", "dd", "if=/dev/zero", f"of={name}", "bs=1M", "count=4", "status=none")


def test_every_user_runs_own_jobs(site: Site) -> None:
    for user in (ALICE, BOB):
        done = site.penstock(user, "run", "--name", f"of-{user}", "--json", *write(user))
        assert done.returncode == 0, done.stderr
        ended = json.loads(done.stderr.splitlines()[-1])
        assert ended["forwarded_bytes"] == 4 << 20
    jobs = {job["name"]: job for job in site.status(OWNER)["jobs"]}
    for user in (ALICE, BOB):
        assert (jobs[f"of-{user}"]["user"], jobs[f"of-{user}"]["state"]) == (user, "ended")


def test_a_user_sees_own_jobs_alone(site: Site) -> None:
    for user in (ALICE, BOB):
        done = site.penstock(user, "run", "--name", f"by-{user}", *write(user))
        assert (done.returncode, done.stderr) == (0, "")
    for user, other in ((ALICE, BOB), (BOB, ALICE)):
        status = site.status(user)
        assert {job["user"] for job in status["jobs"]} == {user}
        assert other not in json.dumps(status)
        assert site.penstock(user, "explain", f"by-{user}").returncode == 0
        assert site.penstock(user, "explain", f"by-{other}").returncode != 0
    assert {job["user"] for job in site.status(OWNER)["jobs"]} >= {ALICE, BOB}


@pytest.mark.parametrize(
    "verb",
    [
        ("mode", "off"),
        ("mode", "off", "--user", BOB),
        ("remap", "by-me", "--direct"),
        ("down",),
    ],
    ids=" ".join,
)
def test_a_user_rules_nothing(site: Site, verb: tuple[str, ...]) -> None:
    assert site.penstock(ALICE, "run", "--name", "by-me", *write("mine")).returncode == 0
    done = site.penstock(ALICE, *verb)
    assert done.returncode != 0
    assert "the deployment's user can" in done.stderr or "another user's" in done.stderr
    status = site.status(OWNER)
    assert (status["mode"], status["modes"]) == ("observe", {})


def test_what_others_may_open_of_a_site_is_its_socket(site: Site) -> None:
    """Of its state directory they see no file, not even the names."""
    done = site.run(ALICE, "sh", "-c", f"ls {site.state}; cd {site.state}; cat *.lock store.db")
    assert done.stdout == ""
    done = site.run(ALICE, "sh", "-c", f"cd {site.state}; echo >new; echo >>controller.lock")
    assert done.returncode != 0
    assert not (site.state / "new").exists()


def test_a_deployment_of_one_user_is_closed_and_the_command_runs() -> None:
    with tempfile.TemporaryDirectory(prefix="site", dir="/dev/shm") as path:
        site = Site(Path(path))
        try:
            for words, status in ((("sh", "-c", "echo ran; exit 3"), 3), (("echo", "ran"), 0)):
                done = site.penstock(ALICE, "run", "--", *words)
                assert (done.stdout, done.returncode) == ("ran\n", status)
                assert done.stderr.count("\n") == 1
                assert "running the command unmanaged" in done.stderr
            assert site.penstock(ALICE, "status").returncode != 0
        finally:
            site.down()


def test_a_default_directory_of_another_user_is_not_used(site: Site) -> None:
    """Else whoever makes /tmp/penstock-UID first would have that user's jobs."""
    place = site.folder / "runtime"
    place.mkdir(exist_ok=True)
    place.chmod(0o755)
    (place / "penstock").symlink_to(site.state)
    run = [*PENSTOCK, "run", "--", "echo", "ran"]
    done = site.run(ALICE, "env", f"XDG_RUNTIME_DIR={place}", *run)
    assert (done.stdout, done.returncode) == ("ran\n", 0)
    assert "running the command unmanaged" in done.stderr


@pytest.mark.parametrize(
    "refused",
    [
        ("--io-nodes", "99"),  # by the controller
        ("--state", "/no/such/" + 200 * "x"),
        ("--state", "/proc/1/root/none"),
        ("--controller", "127.0.0.1:1", "--key-file", "/no/such/key"),
        ("--controller", "127.0.0.1:1", "--key-file", "/etc/shadow"),
        ("--controller", "nowhere"),
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_the_command_runs_whatever_the_deployment_is(site: Site, refused: tuple[str, ...]) -> None:
    done = site.penstock(ALICE, "run", *refused, "--", "sh", "-c", "echo ran; exit 3")
    assert (done.stdout, done.returncode) == ("ran\n", 3)
    assert done.stderr.count("\n") == 1, done.stderr
    assert "running the command unmanaged" in done.stderr
    required = site.penstock(ALICE, "run", *refused, "--require", "--", "echo", "ran")
    assert (required.stdout, required.returncode) == ("", 2)
