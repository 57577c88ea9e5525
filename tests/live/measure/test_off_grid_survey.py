"""Accesses that no model was trained with, by real processes through a real I/O node."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from limits import HANG

from penstock.learn.detection import evaluation, model
from penstock.live.measure import off_grid_survey
from penstock.live.measure.off_grid_survey import Cell
from penstock.live.measure.pattern_survey import EMULATED_STORAGE
from penstock.live.measure.scratch import in_memory, private_state

CELLS = [
    Cell("random", "write", 8, 1),
    Cell("random-varying", "read", 8, 1),
    Cell("own-files-and-strides", "write", 8, 1),
    Cell("backwards", "read", 8, 1),
    Cell("small-strides", "read", 8, 1),
    Cell("large-strides", "write", 8, 1),
    Cell("varying-own-files", "write", 8, 1),
]


def test_what_real_processes_do_is_right_or_unknown() -> None:
    """None of these can be mistaken, however busy the machine is; patterns are told."""
    with (
        in_memory() as root,
        private_state() as folder,
        off_grid_survey.deployment(folder, root, 1, EMULATED_STORAGE) as state,
    ):
        samples = [
            one for cell in CELLS for one in off_grid_survey.observe(cell, state, root, 1, seed=4)
        ]
    assert {one.kind for one in samples} == {cell.kind for cell in CELLS}
    scores = evaluation.off_grid_scores(samples, model.shipped().detect)
    for one in scores:
        assert one.wrong == 0, one
        assert one.pattern == "none" or one.right > 0, one


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_measurement_is_kept(tmp_path: Path, number: int) -> None:
    command = (sys.executable, "-m", "penstock.cli", "patterns", "measure", "--off-grid")
    more = ("--processes", "4", "--io-nodes", "1", "--out", "other.csv")
    journal = tmp_path / "other.csv.jsonl"
    running = subprocess.Popen([*command, *more], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + HANG
        while not (journal.exists() and journal.read_bytes().count(b"\n") >= 2):
            assert time.monotonic() < deadline
            assert running.poll() is None, running.communicate()
            time.sleep(0.05)
        running.send_signal(number)
        _, stderr = running.communicate(timeout=HANG)
    finally:
        running.kill()
    assert running.returncode == 128 + number, stderr
    assert "of 44 runs are kept" in stderr
    assert not (tmp_path / "other.csv").exists(), "a partial result"
