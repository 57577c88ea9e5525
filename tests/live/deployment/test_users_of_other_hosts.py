"""A user of another host: runs a job, and asks what became of it, with the key that root's agent
gives."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from limits import HANG
from live.other_users import AS_ROOT, command_as

pytestmark = AS_ROOT
PENSTOCK = (sys.executable, "-P", "-m", "penstock.cli")
USER, OTHER = "nobody", "games"
"""Ordinary users that every system has."""


class Site:
    """A controller and an I/O node of root's, which listen to other hosts, and root's agent."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        folder.chmod(0o755)
        self.data, self.agent = folder / "data", folder / "agent"
        self.data.mkdir()
        self.data.chmod(0o1777)
        self.key, self.state = folder / "key", folder / "state"
        self.root("key", self.key)
        place = ("--root", self.data, "--state", self.state)
        listen = ("--listen", "127.0.0.1:0", "--key-file", self.key)
        self.root("up", *place, "--io-nodes", "0", "--remote-io-nodes", "1", *listen)
        stack.callback(self.root, "down", "--state", self.state)
        self.address = (self.state / "listen").read_text().strip()
        there = ("--controller", self.address, "--key-file", self.key)
        node = ("--socket", folder / "node.sock", "--control", folder / "node.control")
        carries = ("--listen", "127.0.0.1:0", "--root", self.data, "--coherent", "--with-parent")
        self._start(stack, "ionode", "--number", "0", *node, *carries, *there)
        self._start(stack, "agent", *there, "--run", self.agent)
        while self.status()["io_nodes"][0]["state"] != "serving":
            pass

    def _start(self, stack: ExitStack, *words: object) -> None:
        process = subprocess.Popen([*PENSTOCK, *map(str, words)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        stack.callback(process.stdout.close)
        stack.callback(process.wait, timeout=HANG)
        stack.callback(process.terminate)
        assert process.stdout.readline() != ""

    def root(self, *words: object) -> str:
        command = [*PENSTOCK, *map(str, words)]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=HANG
        ).stdout

    def status(self) -> Any:
        return json.loads(self.root("status", "--state", self.state, "--json"))

    def user(self, name: str, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command_as(name, *PENSTOCK, *words),
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
            cwd=self.data,
            env=os.environ
            | {"PENSTOCK_CONTROLLER": self.address, "PENSTOCK_RUN": str(self.agent)}
            | {"PENSTOCK_KEY_FILE": str(self.key), "XDG_RUNTIME_DIR": str(self.data)},
        )


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with (
        tempfile.TemporaryDirectory(prefix="hosts", dir="/dev/shm") as path,
        ExitStack() as stack,
    ):
        yield Site(Path(path), stack)


def test_users_see_own_jobs_from_another_host(site: Site) -> None:
    write = ("dd", "if=/dev/zero", "of=file", "bs=1M", "count=4", "status=none")
    done = site.user(USER, "run", "--name", "mine", "--", *write)
    assert (done.returncode, done.stderr) == (0, "")
    seen = json.loads(site.user(USER, "status", "--json").stdout)
    assert len(seen["jobs"]) == 1, seen
    (job,) = seen["jobs"]
    assert (job["name"], job["user"], job["direct_bytes"]) == ("mine", USER, 4 << 20)
    assert "mine." in site.user(USER, "explain", "mine").stdout
    assert json.loads(site.user(USER, "top", "--once", "--json").stdout)["jobs"] == []
    assert json.loads(site.user(OTHER, "status", "--json").stdout)["jobs"] == []
    assert site.user(OTHER, "explain", "mine").returncode == 2


def test_io_nodes_of_another_user_are_no_io_nodes_of_a_job(site: Site) -> None:
    """They were listed as such, and were said not to be up."""
    assert site.user(USER, "run", "--name", "direct", "--", "touch", "b").returncode == 0
    (job,) = (j for j in site.status()["jobs"] if j["name"] == "direct")
    assert job["io_nodes"] == []
    explained = site.user(USER, "explain", "direct").stdout
    assert "It had no I/O nodes" in explained
    assert "I/O node 0 carries data for root alone." in explained
    assert "is up" not in explained


def test_errors_name_the_controller(site: Site) -> None:
    there = ("status", "--controller", "127.0.0.1:1", "--key-file", str(site.key))
    done = subprocess.run(
        [*PENSTOCK, *there], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 1
    assert "the controller at 127.0.0.1:1 cannot be reached: " in done.stderr
    both = [*PENSTOCK, *there, "--state", str(site.state)]
    done = subprocess.run(both, capture_output=True, text=True, timeout=HANG, check=False)
    assert (done.returncode, "either --state or --controller" in done.stderr) == (2, True)
    env = os.environ | {"PENSTOCK_CONTROLLER": "127.0.0.1:1"}
    here = [*PENSTOCK, "status", "--state", str(site.state)]
    assert (
        subprocess.run(here, env=env, check=False, timeout=HANG, capture_output=True).returncode
        == 0
    )
