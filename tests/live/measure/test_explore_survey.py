"""Rounds of repeats until convergence, in which converged points are not measured again."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from limits import COMPUTING

from penstock.campaign.journal import Entry, Journal
from penstock.learn.convergence import Convergence
from penstock.learn.write_models.sources import explorer as source
from penstock.live.measure import explore_survey
from penstock.live.measure.access_patterns import Pattern, Phase
from penstock.live.measure.explore_survey import ConvergenceRounds, Point
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


def rank_row(operation: str, pattern: int, size: int, seconds: float) -> dict[str, Any]:
    row = {"operation": operation, "repetition": 0, "pattern": pattern, "rank": 0}
    return row | {"bytes": size, "seconds": seconds, "files": "shared"}


def test_runs_of_an_earlier_version_have_writes_and_reads_too(tmp_path: Path) -> None:
    """Their rows say nothing of I/O nodes."""
    header: dict[str, Any] = {"study": "explore"}
    own: dict[str, Any] = {
        "bandwidth": 2.0,
        "bytes": 4_000_000,
        "makespan": 2.0,
        "forwarded_bytes": 4_000_000,
    }
    own |= {"direct_bytes": 0, "fail_opens": 0, "marked": ""}
    rows = [own, rank_row("write", 0, 2_000_000, 0.5), rank_row("read", 1, 2_000_000, 1.5)]
    with Journal(tmp_path / "runs.jsonl", header) as journal:
        journal.add(Entry(cell=("job by 1", 2.0, 0), seconds=2.0, rows=rows))
        (run,) = explore_survey.runs(journal, [("job", 1, 2)])
    assert ([time.io_node for time in run.ranks], run.io_nodes) == (["", ""], [])
    (point,) = explore_survey.points([run])
    write, read = explore_survey.operation_points([run])
    assert (point.median, write.median, read.median) == pytest.approx((2.0, 4.0, 2 / 1.5))


def test_repeated_patterns_of_a_job_are_one() -> None:
    """FORGE's phases of a job are read as one, so that a repeated phase is there several times."""
    write = Pattern(operation="write", total_size=8192, request_size=1024)
    job = Phase(name="job", patterns=[write, write, write])
    point = Point(job="job", phase="job", processes=2, io_nodes=1, runs=1, marked=0)
    (part,) = explore_survey.pattern_parts([point], [job])["job"]
    assert part == {
        "operation": "write",
        "layout": "file-per-process",
        "spatiality": "contiguous",
        "request_size": 1024,
        "volume": 3 * 8192,
    }


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
