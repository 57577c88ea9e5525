"""The agent of a node: who may use which socket, what it forgets, what it takes in again."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from slurm.site import WAIT, Site

from penstock.errors import InputError
from penstock.live.batch import hooks
from penstock.live.protocol.hook_messages import AdoptJob, AgentDirectory, ReleaseJob

CONNECT = (
    "import os, socket, sys\n"
    "os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))\n"
    "socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n"
)
NOBODY, DAEMON = 65534, 1


@pytest.fixture(scope="module")
def shared(short: Path) -> Iterator[Site]:
    with Site(short / "agent", short / "r") as site:
        yield site


@pytest.fixture
def site(shared: Site) -> Iterator[Site]:
    """An agent without jobs."""
    yield shared
    for job in hooks.adopted_jobs(shared.run):
        for node in ("", "n0", "n1"):
            hooks.send(shared.run, ReleaseJob(job=job, node=node))
    assert shared.left() == []


def adopt(site: Site, job: str = "7", uid: int = NOBODY, **more: Any) -> dict[str, str]:
    message = AdoptJob(job=job, uid=uid, gid=uid, user=str(uid), name=f"slurm-{job}", **more)
    return hooks.send(site.run, message)


def can_connect(path: str | Path, uid: int) -> bool:
    command = [sys.executable, "-c", CONNECT, str(path), str(uid)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT, check=False)
    assert done.returncode == 0 or "PermissionError" in done.stderr, done.stderr
    return done.returncode == 0


@pytest.mark.security
def test_a_jobs_socket_is_its_users_alone(site: Site) -> None:
    path = adopt(site)["PENSTOCK_AGENT"]
    assert can_connect(path, NOBODY)
    assert not can_connect(path, DAEMON)
    assert not can_connect(site.run.control, NOBODY)


def test_a_job_that_is_adopted_twice_is_one(site: Site) -> None:
    first = adopt(site, node="n0")
    assert adopt(site, node="n1") == first
    hooks.send(site.run, ReleaseJob(job="7", node="n0"))
    assert hooks.adopted_jobs(site.run) == ["7"]
    for _ in range(2):
        hooks.send(site.run, ReleaseJob(job="7", node="n1"))
    assert site.left() == []
    assert site.jobs("7")[-1].state == "ended"


@pytest.mark.security
def test_a_number_that_comes_again_is_another_users_job(site: Site) -> None:
    path = adopt(site)["PENSTOCK_AGENT"]
    adopt(site, uid=DAEMON)
    assert can_connect(path, DAEMON)
    assert not can_connect(path, NOBODY)


@pytest.mark.parametrize("job", ["../7", "", ".", "..", "a/b", "x" * 40, "a\n"])
def test_a_number_that_is_no_number_is_refused(site: Site, job: str) -> None:
    with pytest.raises(InputError):
        adopt(site, job=job)
    assert site.left() == []


@pytest.mark.parametrize(
    "data", [b"\n", b"{}\n", b"\xff\xfe\n", b"x" * 200_000, b'{"type":"Stop"}\n']
)
def test_nonsense_is_answered_or_cut_off_and_service_goes_on(site: Site, data: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as hook:
        hook.settimeout(WAIT)
        hook.connect(str(site.run.control))
        try:
            hook.sendall(data)
            assert b"Failed" in hook.recv(65536) or len(data) > 65536
        except ConnectionError:
            assert len(data) > 65536
    assert adopt(site)


def test_a_killed_agent_takes_its_jobs_in_again(site: Site) -> None:
    before = adopt(site)
    assert site.agent is not None
    site.end_agent(signal.SIGKILL)
    site.start_agent()
    assert hooks.adopted_jobs(site.run) == ["7"]
    assert can_connect(before["PENSTOCK_AGENT"], NOBODY)


def test_without_a_controller_a_job_is_refused_and_leaves_nothing(site: Site) -> None:
    site.state.controller.rename(site.state.folder / "elsewhere")
    try:
        with pytest.raises(InputError) as refusal:
            adopt(site)
    finally:
        (site.state.folder / "elsewhere").rename(site.state.controller)
    assert site.left() == []
    missing = f"no controller at {site.state.controller} (No such file or directory)"
    assert f"{missing}; start it with 'penstock up'" in str(refusal.value)
    assert f"refused: {missing}" in site.log()


@pytest.mark.parametrize("verb", ["jobs", "prolog", "epilog"])
def test_without_an_agent_a_command_says_which_and_how_to_start_it(short: Path, verb: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "penstock.cli", "slurm", verb, "--run", str(short / "none")],
        env=os.environ | {"SLURM_JOB_ID": "7", "SLURM_JOB_UID": "65534"},
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert result.returncode == 1
    missing = f"no agent at {short}/none/agent.sock (No such file or directory)"
    assert f"{missing}; start it with 'penstock agent'" in result.stderr


def test_a_second_agent_is_refused(site: Site) -> None:
    command = [sys.executable, "-m", "penstock.cli", "agent", "--state", str(site.state.folder)]
    again = subprocess.run(
        [*command, "--run", str(site.run.path)],
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert again.returncode == 2
    assert "already" in again.stderr


def test_a_users_agent_keeps_its_own_jobs_alone() -> None:
    program = (
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "from penstock.errors import InputError\n"
        "from penstock.live.agent.node_agent import NodeAgent\n"
        "from penstock.live.protocol.hook_messages import AdoptJob, AgentDirectory\n"
        "agent = NodeAgent(AgentDirectory(Path('/tmp/x')), Path('/tmp/x/controller.sock'))\n"
        "os.setgid(1); os.setuid(1)\n"
        "try: asyncio.run(agent.adopt(AdoptJob(job='7', uid=2, gid=2, user='other')))\n"
        "except InputError as error: print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT, check=True
    )
    assert "another user's" in result.stdout


def test_a_folder_that_others_can_write_to_is_refused(short: Path) -> None:
    folder = AgentDirectory(short / "open")
    folder.path.mkdir()
    folder.path.chmod(0o777)
    with pytest.raises(InputError, match="not writable by others"):
        folder.create()
