"""Rounds of repeats until convergence, in which converged points are not measured again."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from limits import COMPUTING

from penstock.learn.convergence import Convergence
from penstock.learn.write_models.sources import explorer as source
from penstock.live.measure.explore_survey import ConvergenceRounds
from penstock.live.measure.explorer import Cell, Run

STEADY, WILD = ("steady", 2, 0), ("wild", 2, 0)
RULE = Convergence(confidence=0.95, within=0.1, least=3)


def runs(point: tuple[str, int, int], times: list[float], marked: str = "") -> list[Run]:
    return [
        Run(
            cell=Cell(*point, repeat),
            bandwidth=1.0,
            bytes=1,
            makespan=seconds,
            forwarded_bytes=0,
            direct_bytes=0,
            fail_opens=0,
            marked=marked,
        )
        for repeat, seconds in enumerate(times)
    ]


def rounds(max_repeats: int = 30) -> ConvergenceRounds:
    return ConvergenceRounds(points=[STEADY, WILD], rule=RULE, max_repeats=max_repeats, seed=1)


def test_only_points_that_have_not_converged_are_repeated() -> None:
    results = runs(STEADY, [1.0, 1.01, 0.99]) + runs(WILD, [1.0, 2.0, 0.5])
    assert rounds().next_round(results) == [Cell(*WILD, 3)]
    assert rounds().pending(results) == [WILD]


def test_rounds_end_when_all_points_have_converged_or_are_at_the_maximum() -> None:
    wild = runs(WILD, [1.0, 2.0, 0.5])
    steady = runs(STEADY, [1.0, 1.01, 0.99])
    assert rounds().next_round(steady + runs(WILD, [2.0, 2.0, 2.0])) == []
    assert rounds(max_repeats=3).next_round(steady + wild) == []


def test_a_marked_run_does_not_count() -> None:
    results = runs(STEADY, [1.0, 1.0, 1.0], marked="direct") + runs(WILD, [1.0, 1.0, 1.0])
    assert rounds().pending(results) == [STEADY]
    assert rounds(max_repeats=3).next_round(results) == []


def test_points_that_are_behind_after_an_interruption_catch_up_first() -> None:
    results = runs(STEADY, [1.0, 3.0]) + runs(WILD, [1.0])
    assert rounds().next_round(results) == [Cell(*WILD, 1)]


def test_the_verb_repeats_until_converged_and_its_runs_are_samples(
    root: Path, tmp_path: Path
) -> None:
    """Emulated at 8 MiB/s, so that 2 MiB take a quarter of a second, nearly the same each time."""
    file, out = tmp_path / "patterns.json", tmp_path / "out"
    pattern = {
        "operation": "write",
        "path": "f",
        "number_of_files": "shared",
        "total_size": 2 << 20,
        "request_size": 256 << 10,
    }
    phase = {"name": "steady", "processes": 2, "patterns": [pattern]}
    file.write_text(json.dumps({"phases": [phase]}))
    spec = "targets=1,rate=8MiB/s,latency=0s,switch=0s"
    explore = ("explore", file, "--root", root, "--io-nodes", "1", "--out", out, "--emulate", spec)
    result = penstock(*explore, "--until-converged", "--budget", "60 s", "--json")
    points: Any = json.loads(result.stdout)["points"]
    assert result.returncode == (1 if "not converged" in result.stderr else 0), result.stderr
    assert 3 <= points[0]["runs"] <= 30
    (sample,) = source.samples((out / "runs.jsonl").read_text(), "runs.jsonl", machine="here")
    assert (sample.write.nodes, sample.write.cores, sample.write.shared) == (1, 2, True)
    assert sample.write.burst == 1 << 20
    assert len(sample.times) == points[0]["runs"]
    assert sample.converged() == (result.returncode == 0)
    assert sample.source == f"explorer, 1 I/O nodes, emulated ({spec})"


@pytest.mark.parametrize(
    ("budget", "message"),
    [("soon", "--budget: 'soon' is not a"), ("0 s", "--budget must be above zero")],
)
def test_an_invalid_budget_is_refused(
    root: Path, tmp_path: Path, budget: str, message: str
) -> None:
    file = tmp_path / "patterns.json"
    pattern = {"operation": "write", "path": "f", "total_size": 8192, "request_size": 4096}
    file.write_text(json.dumps(pattern))
    result = penstock(
        "explore", file, "--root", root, "--budget", budget, "--out", tmp_path / "out"
    )
    assert (result.returncode, message in result.stderr) == (2, True), result.stderr


def penstock(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "penstock.cli", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=COMPUTING,
        check=False,
        env=dict(os.environ),
    )
