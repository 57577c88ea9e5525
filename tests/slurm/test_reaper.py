"""A job is reaped when Slurm says that it ended, never because its user thinks."""

import os
import subprocess
import sys

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


def test_a_jobs_processes_are_found_by_their_environment() -> None:
    number = str(10**9 + os.getpid())
    program = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"SLURM_JOB_ID": number},
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert number in jobs_with_processes()
        process.communicate()
    assert number not in jobs_with_processes()
