"""Jobs of `penstock run` belong to the application that they run, or that their user names."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest
from limits import HANG

from penstock.learn.applications import LONGEST_NAME
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import messages
from penstock.live.protocol.state_directory import StateDirectory

PENSTOCK = (sys.executable, "-m", "penstock.cli")
WITHOUT_SLURM = {name: value for name, value in os.environ.items() if "SLURM" not in name}
SLURM = {"SLURM_JOB_ID": "17", "SLURM_JOB_NAME": "weather"}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StateDirectory]:
    folder = tmp_path_factory.mktemp("applications")
    for name in ("a.py", "b.py"):
        (folder / name).write_text("pass\n")
    (folder / "job.sh").write_text("true\n")
    (folder / "prog").symlink_to("/bin/true")
    (folder / "data").mkdir()
    state = StateDirectory(folder / "state")
    launcher.up(Deployment(state=str(state.folder), roots=[str(folder / "data")], io_nodes=1))
    yield state
    launcher.down(state)


def ran(state: StateDirectory, *arguments: str, **environment: str) -> str:
    """Run a job, and return its application."""
    command = [*PENSTOCK, "run", "--state", str(state.folder), "--require", "--json", *arguments]
    done = subprocess.run(
        command,
        cwd=state.folder.parent,
        env=WITHOUT_SLURM | environment,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    job = json.loads(done.stderr.splitlines()[-1])["job"]
    status = launcher.ask(state, messages.GetStatus(), messages.Status)
    (record,) = (record for record in status.jobs if record.id == job)
    return record.executable


@pytest.mark.parametrize(
    ("command", "application"),
    [
        ("python3 a.py", "a.py"),
        ("python3 b.py", "b.py"),
        ("sh job.sh", "job.sh"),
        ("env X=1 ./prog", "prog"),
        ("mpiexec --allow-run-as-root --oversubscribe -n 2 ./prog", "prog"),
        ("timeout 1h nice -n 1 sh -c 'X=1 exec ./prog >log 2>&1'", "prog"),
        ("sh -c './prog && true'", "sh -c './prog && true'"),
    ],
)
def test_the_application_is_what_runs(
    state: StateDirectory, command: str, application: str
) -> None:
    assert ran(state, "--", *shlex.split(command)) == application


def test_a_user_who_names_the_application_is_right(state: StateDirectory) -> None:
    """From what is said about this run to what is said about the Slurm job that it is part of."""
    named = ("--name", "run-3", "--", "./prog")
    assert ran(state, "--application", "Weather 4", *named, **SLURM) == "Weather 4"
    assert ran(state, *named, **SLURM, PENSTOCK_APPLICATION="storm") == "storm"
    assert ran(state, *named, **SLURM) == "run-3"
    assert ran(state, "--", "./prog", **SLURM) == "weather"
    assert ran(state, "--", "./prog") == "prog"


@pytest.mark.parametrize(
    "name", ["", "job.sh", "run.sbatch", "wrap", "sbatch", "interactive", "bash", "penstock"]
)
def test_a_name_that_slurm_gave_by_itself_does_not_count(state: StateDirectory, name: str) -> None:
    assert ran(state, "--", "./prog", **SLURM | {"SLURM_JOB_NAME": name}) == "prog"


@pytest.mark.security
def test_a_hostile_name_of_a_slurm_job_is_bounded(state: StateDirectory) -> None:
    name = ran(state, "--", "./prog", **SLURM | {"SLURM_JOB_NAME": "\x1b" + "x" * 10_000})
    assert name.startswith("?xxx")
    assert len(name) == LONGEST_NAME


@pytest.mark.security
def test_a_program_of_10_kb_is_bounded_and_runs(state: StateDirectory) -> None:
    assert len(ran(state, "--", "sh", "-c", "true; : " + "x" * 10_000)) < LONGEST_NAME


@pytest.mark.security
def test_an_agent_that_sends_10_kb_is_refused(state: StateDirectory) -> None:
    begin = messages.BeginJob(
        name="a", pid=1, command=["a"], user="", protocol=2, executable="x" * 10_000
    )
    with pytest.raises(Exception, match="executable"):
        launcher.ask(state, begin, messages.JobAccepted)
