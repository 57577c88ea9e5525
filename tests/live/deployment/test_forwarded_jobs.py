"""Unmodified commands through I/O nodes: forwarded, remapped while they run, and never broken."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from limits import HANG

from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import messages
from penstock.live.protocol.state_directory import StateDirectory, lock_holder, wait_for_exit

PENSTOCK = (sys.executable, "-m", "penstock.cli")
MIB = 1 << 20
WAIT = HANG
WRITER = """
import os, sys
file = os.open("out", os.O_CREAT | os.O_RDWR)
for line in sys.stdin:
    for _ in range(8): os.write(file, line[0].encode() * 131072)
    print("written", flush=True)
"""
"""Writes a MiB of what each line begins with."""


@pytest.fixture
def state(root: Path, tmp_path: Path) -> Iterator[StateDirectory]:
    deployment = Deployment(state=str(tmp_path / "state"), roots=[str(root)], io_nodes=2)
    launcher.up(deployment)
    state = StateDirectory(tmp_path / "state")
    yield state
    launcher.down(state)


@pytest.fixture
def job(state: StateDirectory, root: Path) -> Iterator["subprocess.Popen[str]"]:
    """A job that writes a MiB per line of input."""
    command = [*PENSTOCK, "run", "--state", str(state.folder), "--name", "writer"]
    with subprocess.Popen(
        [*command, "--io-nodes", "1", "--", sys.executable, "-c", WRITER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
    ) as job:
        yield job
        job.kill()


def write(job: "subprocess.Popen[str]", letter: str) -> None:
    stdin, stdout = _pipes(job)
    stdin.write(f"{letter}\n")
    stdin.flush()
    assert stdout.readline() == "written\n"


def finish(job: "subprocess.Popen[str]") -> None:
    _pipes(job)[0].close()
    assert job.wait(WAIT) == 0


def _pipes(job: "subprocess.Popen[str]") -> tuple[IO[str], IO[str]]:
    assert job.stdin is not None
    assert job.stdout is not None
    return job.stdin, job.stdout


def status(state: StateDirectory) -> messages.Status:
    return launcher.ask(state, messages.GetStatus(), messages.Status)


def written(state: StateDirectory) -> list[object]:
    """Return the bytes that each I/O node has written."""
    return [node.write_bytes for node in status(state).io_nodes]


def penstock(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*PENSTOCK, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_commands_bytes_go_through_its_io_nodes(state: StateDirectory, root: Path) -> None:
    copy = ("dd", "if=/dev/urandom", f"of={root}/f", "bs=64k", "count=32", "status=none")
    copied = penstock("run", "--state", state.folder, "--json", "--", *copy)
    assert json.loads(copied.stderr) == {
        "job": "dd.1",
        "status": 0,
        "forwarded_bytes": 2 * MIB,
        "carried_bytes": 0,
        "direct_bytes": 0,
        "fail_opens": 0,
    }
    check = ("sh", "-c", f"cat < {root}/f | cksum")
    piped = penstock("run", "--state", state.folder, "--", *check)
    assert piped.stdout.split() == penstock_free("cksum", root / "f").split()[:2]
    site_status = status(state)
    assert site_status.forwarded_bytes >= 2 * MIB
    assert site_status.fail_open_total == 0
    assert sum(map(int, map(str, written(state)))) == 2 * MIB


@pytest.mark.parametrize(
    ("scheduler", "sentence"),
    [("fifo", "Its calls have credits: it asked"), ("twins", "Each call asks (scheduler twins):")],
)
def test_explain_says_whether_credits_were_in_force(
    scheduler: str, sentence: str, root: Path, tmp_path: Path
) -> None:
    state, one = str(tmp_path / "orders"), ("--io-nodes", "1", "--scheduler", scheduler)
    up = penstock("up", "--root", root, *one, "--state", state)
    assert up.returncode == 0, up.stderr
    try:
        copy = f"dd if=/dev/zero of={root}/g bs=64k count=64 2>&1; sleep 1.5"
        look = f"penstock explain sh --state {state}; penstock status --json --state {state}"
        ran = penstock("run", "--state", state, "--", "sh", "-c", f"{copy}; {look}")
    finally:
        penstock("down", "--state", state)
    explained, shown = ran.stdout[: (at := ran.stdout.index("{"))], json.loads(ran.stdout[at:])
    assert sentence in " ".join(explained.split())
    (counters,) = (job["counters"] for job in shown["jobs"])
    calls = counters["forwarded_reads"] + counters["forwarded_writes"]
    assert calls == 64
    assert (
        counters["questions"] == calls
        if scheduler == "twins"
        else 0 < counters["questions"] < calls / 2
    )


def penstock_free(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_remap_moves_a_running_job(
    state: StateDirectory, root: Path, job: "subprocess.Popen[str]"
) -> None:
    """Its map is read between two requests: what follows the remap goes elsewhere, or direct."""
    write(job, "a")
    assert written(state) == [MIB, 0]
    assert penstock("remap", "--state", state.folder, "writer", "--io-nodes", "1").returncode == 0
    (running,) = status(state).jobs
    assert (running.state, running.io_nodes) == ("running", [1])
    assert running.forwarded_bytes == MIB
    write(job, "b")
    assert written(state) == [MIB, MIB]
    assert penstock("remap", "--state", state.folder, "writer", "--direct").returncode == 0
    write(job, "c")
    finish(job)
    assert written(state) == [MIB, MIB]
    assert (root / "out").read_bytes() == b"a" * MIB + b"b" * MIB + b"c" * MIB
    site_status = status(state)
    assert (site_status.forwarded_bytes, site_status.direct_bytes) == (2 * MIB, MIB)


def test_a_job_whose_io_node_is_killed_is_none_the_worse(
    state: StateDirectory, root: Path, job: "subprocess.Popen[str]"
) -> None:
    write(job, "a")
    pid = status(state).io_nodes[0].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    write(job, "b")
    write(job, "c")
    finish(job)
    assert (root / "out").read_bytes() == b"a" * MIB + b"b" * MIB + b"c" * MIB
    site_status = status(state)
    assert site_status.forwarded_bytes + site_status.direct_bytes == 3 * MIB
    assert site_status.jobs[0].status == 0


def test_a_killed_controller_leaves_the_data_path_standing(
    state: StateDirectory, root: Path, job: "subprocess.Popen[str]"
) -> None:
    """The map stays and the I/O nodes live on, until the next `up` or `down`."""
    write(job, "a")
    pid = lock_holder(state.lock)
    assert pid
    process = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert wait_for_exit(process, WAIT)
    os.close(process)
    write(job, "b")
    assert [lock_holder(state.node_lock(k)) is not None for k in range(2)] == [True, True]
    finish(job)
    assert (root / "out").read_bytes() == b"a" * MIB + b"b" * MIB


def test_after_down_a_running_job_goes_on_directly(
    state: StateDirectory, root: Path, job: "subprocess.Popen[str]"
) -> None:
    write(job, "a")
    assert penstock("down", "--state", state.folder).returncode == 0
    write(job, "b")
    finish(job)
    assert (root / "out").read_bytes() == b"a" * MIB + b"b" * MIB
    assert [lock_holder(state.node_lock(k)) for k in range(2)] == [None, None]


def test_the_verbs_work_together(root: Path, tmp_path: Path) -> None:
    state = ("--state", tmp_path / "s")
    up = penstock("up", "--root", root, "--io-nodes", "1", *state, "--json")
    try:
        stdout: Any = json.loads(up.stdout)
        assert stdout["roots"] == [str(root)]
        assert [node["state"] for node in stdout["io_nodes"]] == ["serving"]
        again = penstock("up", "--root", root, "--io-nodes", "1", *state)
        assert (again.returncode, "already up" in again.stderr) == (2, True)
        people = penstock("status", *state).stdout
        assert "0 B forwarded, 0 B direct, 0 fail-opens" in people
    finally:
        down = penstock("down", *state, "--json")
    assert json.loads(down.stdout)["ended"] is True


def test_an_emulated_file_system_takes_its_time(root: Path, tmp_path: Path) -> None:
    """4 MiB over a link of 16 MiB/s take a quarter of a second, however fast the machine is."""
    spec = "targets=1,rate=1GiB/s,latency=0s,switch=0s,io-node-link=16MiB/s"
    state = StateDirectory(tmp_path / "state")
    launcher.up(Deployment(state=str(state.folder), roots=[str(root)], io_nodes=1, emulate=spec))
    try:
        timed = f"import os, time; f = os.open({str(root / 'f')!r}, os.O_CREAT | os.O_RDWR)\n"
        timed += "t = time.monotonic(); [os.write(f, bytes(1 << 20)) for _ in range(4)]\n"
        timed += "print(time.monotonic() - t)"
        run = penstock("run", "--state", state.folder, "--", sys.executable, "-c", timed)
        assert float(run.stdout) > 0.18  # the first request does not wait for one before it
        assert status(state).forwarded_bytes == 4 * MIB
    finally:
        launcher.down(state)


def test_an_attached_deployment_ends_with_who_started_it(root: Path, tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "state")
    program = (
        "import sys\n"
        "from penstock.live.deployment import launcher\n"
        "from penstock.live.deployment.spec import Deployment\n"
        f"launcher.up(Deployment(state={str(state.folder)!r}, roots=[{str(root)!r}], io_nodes=1,"
        " attached=True))\n"
        "print('up', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert _pipes(owner)[1].readline() == "up\n"
        pids = [lock_holder(state.lock), lock_holder(state.node_lock(0))]
        processes = [os.pidfd_open(pid) for pid in pids if pid]
        assert len(processes) == 2
        owner.kill()
    for process in processes:
        assert wait_for_exit(process, WAIT)
        os.close(process)
