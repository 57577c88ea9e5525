"""Observations of known patterns: the shipped model detects a fresh sample of them."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from limits import COMPUTING

from penstock.errors import InputError
from penstock.learn.detection import evaluation, model, samples
from penstock.live.deployment.launcher import LaunchError
from penstock.live.measure import pattern_survey
from penstock.live.measure.explorer import Cell
from penstock.live.measure.pattern_survey import PatternRuns
from penstock.live.measure.scratch import in_memory, private_state
from penstock.model import Observation
from penstock.model.observation import PATTERNS

PENSTOCK = (sys.executable, "-m", "penstock.cli", "patterns")
TIMEOUT = COMPUTING
SLICE = pattern_survey.Grid(sizes=(64 * 1024,), processes=(8,), io_nodes=(2,))
FEW: tuple[str, ...] = (
    "--sizes",
    "32KiB",
    "--processes",
    "4",
    "--io-nodes",
    "1",
    "--interval",
    "50 ms",
)
FEW += ("--seconds", "500 ms", "--keep", "5", "--json")


def quiet(requests: int) -> Observation:
    nothing: dict[str, Any] = dict.fromkeys(Observation.__dataclass_fields__, 0)
    return Observation(**nothing | {"writes": requests})


def test_intervals_in_which_ranks_begin_and_end_are_dropped() -> None:
    observations = [quiet(n) for n in (0, 0, 3, 10, 11, 12, 7, 1, 0)]
    assert [one.requests for one in pattern_survey.mid_run(observations)] == [10, 11, 12]
    assert pattern_survey.mid_run([quiet(5)] * 3) == []


def test_the_grid_has_every_combination_once_and_as_many_of_each_pattern() -> None:
    grid = pattern_survey.Grid()
    cells = pattern_survey.cells(grid, 1)
    assert len(cells) == len(set(cells)) == 3 * 2 * 4 * 3 * 3
    assert set(Counter(grid.parameters(cell)[0] for cell in cells).values()) == {72}
    assert cells != sorted(cells)
    assert cells == pattern_survey.cells(grid, 1) != pattern_survey.cells(grid, 2)


def test_a_grid_whose_runs_are_too_short_is_refused_before_it_runs() -> None:
    with pytest.raises(InputError, match="too short for 10 observations"):
        pattern_survey.grid(full=False, seconds=0.5)
    with pytest.raises(InputError, match="a grid to measure"):
        pattern_survey.grid(full=False, interval=0.0001)
    assert pattern_survey.grid(full=True) == pattern_survey.FULL


@pytest.mark.parametrize("accuracy", [0.75, pytest.param(0.95, marks=pytest.mark.rates)])
def test_the_shipped_model_detects_a_fresh_sample(accuracy: float) -> None:
    """A model that was trained months ago must fit what I/O nodes observe today.

    On a busy machine an interval has the requests of few ranks, and a strided file looks contiguous
    in some of them; a model that does not fit is right in a third.
    """
    samples_ = []
    with (
        in_memory() as root,
        private_state() as state,
        PatternRuns(
            SLICE, root=root, state=state, emulate=pattern_survey.EMULATED_STORAGE, seed=3
        ) as runs,
    ):
        for cell in pattern_survey.cells(SLICE, 3):
            samples_ += runs.samples(cell)
    assert Counter(one.pattern for one in samples_) == dict.fromkeys(PATTERNS, 20)
    for one in samples_:
        observation = one.observation
        assert (observation.smallest, observation.largest) == (one.request, one.request)
        assert bool(observation.reads) == (one.operation == "read") != bool(observation.writes)
        assert 1 <= observation.clients <= 4, "eight ranks over two I/O nodes"
    scores = evaluation.model_scores(model.shipped(), samples_)
    assert scores.accuracy >= accuracy, scores
    assert scores.coverage >= 0.9, scores


def test_a_run_with_too_few_observations_is_refused() -> None:
    grid = pattern_survey.Grid(sizes=(4096,), processes=(1,), io_nodes=(1,), volume=8192)
    cell = Cell("file-per-process-write-4K", 1, 1, 0)
    with (
        in_memory() as root,
        private_state() as state,
        PatternRuns(
            grid,
            root=root,
            state=state,
            emulate=pattern_survey.EMULATED_STORAGE,
            seed=1,
            attempts=1,
        ) as runs,
        pytest.raises(LaunchError, match="of 10 observations in mid-run"),
    ):
        runs.samples(cell)


def test_an_interrupted_measurement_continues_where_it_stopped(tmp_path: Path) -> None:
    command = [*PENSTOCK, "measure", "--out", "seen.csv", *FEW]
    journal = tmp_path / "seen.csv.jsonl"
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + TIMEOUT
        while not (journal.exists() and journal.read_bytes().count(b"\n") >= 3):
            assert time.monotonic() < deadline
            assert running.poll() is None, running.communicate()
            time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        _, stderr = running.communicate(timeout=TIMEOUT)
    finally:
        running.kill()
    assert running.returncode == 128 + signal.SIGTERM, stderr
    assert "of 6 runs are kept" in stderr
    assert not (tmp_path / "seen.csv").exists(), "a partial result"
    before = journal.read_bytes()
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=TIMEOUT
    )
    assert done.returncode == 0, done.stderr
    assert journal.read_bytes().startswith(before)
    result = json.loads(done.stdout)
    assert (result["runs"], result["observations"]) == (6, 30)
    observations = samples.read(tmp_path / "seen.csv")
    assert Counter((one.pattern, one.operation) for one in observations) == {
        (pattern, operation): 5 for pattern in PATTERNS for operation in samples.OPERATIONS
    }
