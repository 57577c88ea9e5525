"""A measurement whose job a signal ended was interrupted, whatever status the job ended with."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from limits import HANG

from penstock.live.agent.runner import Outcome
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.measure.scratch import InterruptedRun, check_interrupted
from penstock.live.protocol.state_directory import StateDirectory

MEASURES = """
import sys
from pathlib import Path
from penstock.live.agent import runner
from penstock.live.measure.scratch import InterruptedRun, check_interrupted
from penstock.live.protocol.state_directory import StateDirectory

outcome = runner.run(StateDirectory(Path(sys.argv[1])), ["sh", "-c", sys.argv[2]], name="a")
try:
    check_interrupted(outcome)
except InterruptedRun as interrupt:
    print("interrupted by", interrupt.number, "status", outcome.status)
else:
    print("not interrupted, status", outcome.status)
"""
WAITS = "trap 'exit 1' INT TERM; echo ready; while :; do sleep 0.02; done"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StateDirectory]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "data").mkdir()
    state = StateDirectory(folder / "state")
    launcher.up(Deployment(state=str(state.folder), roots=[str(folder / "data")], io_nodes=0))
    yield state
    launcher.down(state)


def measuring(state: StateDirectory, script: str) -> "subprocess.Popen[str]":
    command = (sys.executable, "-c", MEASURES, str(state.folder), script)
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path("/"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_answers_a_signal_by_another_status_was_interrupted(
    state: StateDirectory, number: int
) -> None:
    """Python, interrupted while it starts, ends with status 1: "the ranks ended with status 1"."""
    with measuring(state, WAITS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        out, _ = process.communicate(timeout=HANG)
    assert out == f"interrupted by {number} status 1\n"


def test_a_job_that_fails_by_itself_was_not(state: StateDirectory) -> None:
    with measuring(state, "exit 1") as process:
        out, _ = process.communicate(timeout=HANG)
    assert out == "not interrupted, status 1\n"


@pytest.mark.parametrize(
    ("status", "arrived", "interrupted"),
    [(130, None, True), (0, signal.SIGINT, False), (1, signal.SIGUSR1, False), (139, None, False)],
)
def test_what_counts_as_an_interrupt(status: int, arrived: int | None, interrupted: bool) -> None:
    outcome = Outcome(job="a.1", status=status, counters={}, signal=arrived)
    if interrupted:
        with pytest.raises(InterruptedRun):
            check_interrupted(outcome)
    else:
        check_interrupted(outcome)
