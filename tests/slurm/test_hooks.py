"""Whatever fails on our side: hooks end in time with status 0, jobs run, nodes stay in service."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from limits import HANG, within
from slurm.cluster import Cluster
from slurm.site import HOOKS, Site, install_hooks
from slurm.test_jobs import MIB, dd

from penstock.live.deployment import launcher

HOOK_WITHIN = 2.0
SCRIPTS = ("prolog.sh", "epilog.sh", "task-prolog.sh")
JOB = {
    "SLURM_JOB_ID": "4242",
    "SLURM_JOB_UID": "65534",
    "SLURM_JOB_GID": "65534",
    "SLURM_JOB_USER": "nobody",
    "SLURMD_NODENAME": "n0",
}


@pytest.fixture(scope="module")
def up(short: Path, run: Path) -> Iterator[Site]:
    with Site(short / "faults", run) as site:
        yield site


@pytest.fixture
def site(up: Site) -> Iterator[Site]:
    """A site with an agent that serves, whatever the test before did to it."""
    yield up
    up.end_agent(signal.SIGKILL)
    shutil.rmtree(up.run.path / "jobs", ignore_errors=True)
    up.start_agent()


def stop(site: Site) -> None:
    assert site.agent is not None
    site.agent.send_signal(signal.SIGSTOP)


def kill(site: Site) -> None:
    site.end_agent(signal.SIGKILL)


def remove(site: Site) -> None:
    site.end_agent()
    shutil.rmtree(site.run.path)


FAULTS = [stop, kill, remove]


def hook(folder: Path, name: str) -> tuple[int, str, float]:
    """Call a hook as Slurm does, with no search path; return status, output and seconds."""
    began = time.monotonic()
    done = subprocess.run(
        [folder / name], env=JOB, capture_output=True, text=True, timeout=HANG, check=False
    )
    return done.returncode, done.stdout, time.monotonic() - began


@pytest.fixture(scope="module")
def hooks(short: Path, run: Path) -> Path:
    """The hooks as they are made."""
    install_hooks(short / "made", run)
    return short / "made"


@pytest.mark.timed
@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_hook_ends_in_time(
    site: Site, hooks: Path, fault: Callable[[Site], None], name: str
) -> None:
    fault(site)
    status, output, seconds = hook(hooks, name)
    assert (status, output) == (0, "")
    assert seconds < within(HOOK_WITHIN)


@pytest.mark.timed
def test_a_hook_ends_in_time_where_the_controller_is_stopped(site: Site, hooks: Path) -> None:
    pid = int(site.state.lock.read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        status, _, seconds = hook(hooks, "prolog.sh")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert status == 0
    assert seconds < within(HOOK_WITHIN)


@pytest.mark.timed
def test_a_socket_that_takes_all_and_says_nothing(site: Site, hooks: Path) -> None:
    site.end_agent()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(site.run.control))
        dead.listen(1)
        status, _, seconds = hook(hooks, "prolog.sh")
    assert status == 0
    assert seconds < within(HOOK_WITHIN)


def break_it(folder: Path, how: str) -> None:
    conf, program = folder / "penstock.conf", folder / "penstock"
    match how:
        case "no conf":
            conf.unlink()
        case "broken conf":
            conf.write_text("if then ((\n")
        case "empty conf":
            conf.write_text("")
        case "no program":
            program.unlink()
        case "failing program":
            program.write_text("#!/bin/sh\nexit 3\n")
        case "hanging program":
            program.write_text("#!/bin/sh\ntrap '' TERM\nwhile :; do /bin/sleep 60; done\n")


BREAKS = ["no conf", "broken conf", "empty conf", "no program", "failing program"]


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("how", BREAKS)
def test_a_broken_installation_is_no_fault_of_the_job(tmp_path: Path, how: str, name: str) -> None:
    install_hooks(tmp_path / "hooks", tmp_path / "run")
    break_it(tmp_path / "hooks", how)
    assert hook(tmp_path / "hooks", name)[:2] == (0, "")


@pytest.mark.timed
@pytest.mark.parametrize("name", SCRIPTS[:2])
def test_a_program_that_does_not_end_is_ended(tmp_path: Path, name: str) -> None:
    install_hooks(tmp_path / "hooks", tmp_path / "run")
    break_it(tmp_path / "hooks", "hanging program")
    status, _, seconds = hook(tmp_path / "hooks", name)
    assert status == 0
    assert seconds < within(HOOK_WITHIN)


@pytest.mark.parametrize("fault", FAULTS)
def test_jobs_run_and_nodes_stay_in_service(
    slurm: Cluster, site: Site, fault: Callable[[Site], None]
) -> None:
    fault(site)
    path = site.root / f"unmanaged-{fault.__name__}"
    job = slurm.sbatch(f"srun --overlap -n1 {dd(path)}", "-N4")
    assert slurm.await_end(job) == "COMPLETED"
    assert path.stat().st_size == 4 * MIB
    assert set(slurm.states().values()) == {"idle"}


def test_hooks_call_no_command_of_slurms_and_no_search_path() -> None:
    for name in SCRIPTS:
        text = (HOOKS / name).read_text()
        words = {"squeue", "scontrol", "sinfo", "sacct", "scancel", "srun"}
        assert not words & set(text.split()), name
        assert subprocess.run(["sh", "-n", HOOKS / name], check=False).returncode == 0


def halves(slurm: Cluster, first: Path, second: Path) -> tuple[str, Path]:
    """Start a job that has written the first file, and writes the second when another is there."""
    written, go = first.with_suffix(".written"), first.with_suffix(".go")
    job = slurm.sbatch(
        f"{dd(first)} && : >{written}; until [ -e {go} ]; do sleep 0.1; done; {dd(second)}"
    )
    slurm.wait(written.exists, "first half")
    return job, go


def test_a_job_outlives_its_agent(slurm: Cluster, site: Site) -> None:
    """The agent is killed and started again during a job; a later step is part of the job."""
    second = site.root / "second-half"
    job, go = halves(slurm, site.root / "first-half", second)
    site.end_agent(signal.SIGKILL)
    site.start_agent()
    go.touch()
    assert site.await_end(slurm, job) == "COMPLETED"
    assert second.stat().st_size == 4 * MIB
    lost, again = site.jobs(job)
    assert (lost.state, again.state) == ("lost", "ended")
    assert again.forwarded_bytes == 4 * MIB
    assert site.left() == []


def test_a_job_outlives_its_controller(slurm: Cluster, site: Site) -> None:
    """The deployment goes down and comes up during a job, which it forwards once more."""
    job, go = halves(slurm, site.root / "before", site.root / "after")
    launcher.down(site.state)
    site.up()
    slurm.wait(lambda: len(site.jobs(job)) == 1, "job that came back")
    go.touch()
    assert site.await_end(slurm, job) == "COMPLETED"
    assert site.job(job).forwarded_bytes == 8 * MIB
    assert site.left() == []


def test_what_an_epilog_missed_is_reaped(slurm: Cluster, site: Site, short: Path) -> None:
    """The agent is stopped while a job ends, and its socket is gone: no release ever comes."""
    job, go = halves(slurm, site.root / "missed", site.root / "missed-too")
    site.run.control.rename(site.run.path / "hidden")
    go.touch()
    assert slurm.await_end(job) == "COMPLETED"
    (site.run.path / "hidden").rename(site.run.control)
    assert job in site.left()
    site.end_agent(signal.SIGKILL)
    site.start_agent("--grace", "300 ms", "--reap-every", "100 ms", SLURM_CONF=str(slurm.conf))
    slurm.wait(lambda: site.left() == [], "reaped job")
    assert f"job {job} has ended without an epilog" in site.log()


def test_an_allocation_without_processes_is_not_reaped(slurm: Cluster, site: Site) -> None:
    site.end_agent()
    site.start_agent("--grace", "100 ms", "--reap-every", "50 ms", SLURM_CONF=str(slurm.conf))
    # The user's shell is on another host usually: here it must not look like a process of the job.
    shell = ["env", "-u", "SLURM_JOB_ID", "sh", "-c", "echo; read job; srun --jobid=$job id -u"]
    with subprocess.Popen(
        ["salloc", "-N1", "-J", "thinks", *shell],
        env=slurm.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd="/",
    ) as allocated:
        assert allocated.stdout is not None
        assert allocated.stdout.readline() == "\n"
        job = slurm.command("squeue", "-h", "-n", "thinks", "-o", "%A").stdout.strip()
        slurm.wait(lambda: site.left() == [job, job], "adopted job")
        question = f"asked whether job {job} has ended: no"
        slurm.wait(lambda: site.log().count(question) >= 3, "question to Slurm")
        assert site.left() == [job, job]
        status, _ = allocated.communicate(f"{job}\n", timeout=HANG)
    assert status.strip() == "0"
    slurm.await_idle()
    slurm.wait(lambda: site.left() == [], "release")


def test_a_hook_imports_nothing_large() -> None:
    """Every job of a node pays for it, and several begin at once."""
    program = (
        "import sys, penstock.cli.verbs.slurm; "
        "print({'numpy', 'rich', 'asyncio'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG, check=True
    )
    assert result.stdout == "set()\n"
