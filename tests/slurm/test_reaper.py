"""A job is reaped when Slurm says that it ended, never because its user thinks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.live.agent.reaper import Reaper, jobs_with_processes


class Node:
    """A node at a time of its own: which jobs have processes, and what Slurm says."""

    def __init__(self, answer: bool | None) -> None:
        self.now, self.running, self.answer, self.questions = 0.0, {"1"}, answer, 0
        self.reaper = Reaper(
            self._alive,
            grace=60.0,
            max_silence=3600.0,
            running=lambda: self.running,
            clock=lambda: self.now,
        )

    def _alive(self, _: str) -> bool | None:
        self.questions += 1
        return self.answer

    def gone_at(self, now: float) -> list[str]:
        self.now = now
        return self.reaper(["1"])


def test_a_job_with_processes_is_never_asked_about() -> None:
    node = Node(answer=False)
    assert [node.gone_at(t) for t in (0.0, 100.0, 10_000.0)] == [[], [], []]
    assert node.questions == 0


def test_an_ended_job_is_gone_after_the_grace() -> None:
    node = Node(answer=False)
    assert node.gone_at(0.0) == []
    node.running = set()
    assert node.gone_at(59.0) == []
    assert node.gone_at(61.0) == ["1"]


def test_an_allocation_whose_user_thinks_stays_and_squeue_runs_once_per_grace() -> None:
    node = Node(answer=True)
    node.gone_at(0.0)
    node.running = set()
    assert all(node.gone_at(float(t)) == [] for t in range(0, 7200, 10))
    assert node.questions <= 7200 / 60


@pytest.mark.parametrize(("after", "gone"), [(3500.0, []), (3700.0, ["1"])])
def test_where_slurm_does_not_answer_a_job_is_forgotten_in_the_end(
    after: float, gone: list[str]
) -> None:
    node = Node(answer=None)
    node.gone_at(0.0)
    node.running = set()
    node.gone_at(1000.0)
    assert node.gone_at(after) == gone


@pytest.mark.security
def test_what_a_process_says_of_itself_is_not_believed() -> None:
    """Else anybody could keep a job that has ended among those that run."""
    number = str(10**9 + os.getpid())
    program = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [f"slurmstepd: [{number}.0]", "-c", program],
        executable=sys.executable,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"SLURM_JOB_ID": number},
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert number not in jobs_with_processes()
        process.communicate()


def process(proc: Path, pid: int, *, name: str, exe: str, users: str, cgroup: str) -> None:
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "cmdline").write_text(name)
    (folder / "exe").symlink_to(exe)
    (folder / "status").write_text(f"Name:\tx\nUid:\t{users}\nGid:\t0\t0\t0\t0\n")
    (folder / "cgroup").write_text(cgroup)


STEPD, ROOT, USER = "/usr/sbin/slurmstepd", "0\t0\t0\t0", "77\t77\t77\t77"


@pytest.mark.parametrize(
    ("name", "exe", "users", "cgroup", "expected"),
    [
        ("slurmstepd: [7.batch]", STEPD, ROOT, "0::/", True),
        ("slurmstepd: [7.batch]", f"{STEPD} (deleted)", ROOT, "0::/", True),
        ("slurmstepd: [7.batch]", STEPD, USER, "0::/", False),
        ("slurmstepd: [7.batch]", STEPD, "77\t0\t0\t0", "0::/", False),
        ("slurmstepd: [7.batch]", "/usr/bin/sudo", ROOT, "0::/", False),
        ("a", "/bin/a", USER, "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", True),
        ("a", "/bin/a", USER, "0::/system.slice/n1_slurmstepd.scope/job_7/step_0", True),
        ("a", "/bin/a", USER, "4:memory:/slurm/uid_77/job_7/step_batch\n1:cpu:/", True),
        ("a", "/bin/a", USER, "1:cpu:/\n4:freezer:/slurm_n1/uid_77/job_7", True),
        ("a", "/bin/a", USER, "0::/user.slice/user-77.slice/slurmstepd.scope/job_7/step_0", False),
        ("a", "/bin/a", USER, "0::/user.slice/user-77.slice/slurm/uid_77/job_7", False),
    ],
)
def test_what_the_kernel_says_of_a_process_is(
    tmp_path: Path, name: str, exe: str, users: str, cgroup: str, *, expected: bool
) -> None:
    process(tmp_path, 12, name=name, exe=exe, users=users, cgroup=cgroup)
    assert jobs_with_processes(tmp_path) == ({"7"} if expected else set())
