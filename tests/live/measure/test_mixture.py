"""Curves told from base patterns, held against the explorer's own measurement of the mixture."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
PENSTOCK = (sys.executable, "-m", "penstock.cli")
EMULATED = "targets=4,count=4,rate=80MiB/s,latency=2ms,switch=0"
"""Slow enough for two busy cores: what is measured is the file system."""


def told(folder: Path, patterns: dict[str, Any], *, repeats: int, io_nodes: str) -> Any:
    """Measure, and return what `penstock profile` says of the mixtures."""
    (folder / "data").mkdir()
    (folder / "patterns.json").write_text(json.dumps(patterns))
    explore = ("explore", "patterns.json", "--root", "data", "--out", "found")
    size = ("--io-nodes", io_nodes, "--repeats", str(repeats))
    _run(folder, *explore, *size, "--emulate", EMULATED)
    return json.loads(_run(folder, "profile", "--curves", "found/curves.json", "--json"))


def _run(folder: Path, *args: str) -> str:
    return subprocess.run(
        [*PENSTOCK, *args], cwd=folder, capture_output=True, text=True, check=True, timeout=250
    ).stdout


def test_a_mixture_is_told_from_its_measured_parts(tmp_path: Path) -> None:
    """The explorer says which patterns its curves are of, and the times of parts add up."""
    patterns = json.loads((EXAMPLES / "mixture.json").read_text())
    patterns["phases"] = patterns["phases"][:3]
    for phase in patterns["phases"]:
        for pattern in phase["patterns"]:
            pattern["total_size"] //= 8
    found = told(tmp_path, patterns, repeats=1, io_nodes="1")
    (one,) = found["mixtures"]
    assert found["emulated"] == EMULATED
    assert (one["job"], one["io_nodes"], one["octaves"]) == ("both", 1, 0)
    curves = json.loads((tmp_path / "found" / "curves.json").read_text())
    read, written = curves["patterns"]["both"]
    assert (read["operation"], read["volume"]) == ("read", 2 << 20)
    assert (written["layout"], written["volume"]) == ("shared", 6 << 20)
    known = {job["id"]: job["curve"]["1"] for job in curves["jobs"]}
    seconds = 2 / known["restart"] + 6 / known["checkpoint"]
    assert one["told"] == pytest.approx(8 / seconds)
    assert one["error"] == pytest.approx(one["told"] / known["both"] - 1)


@pytest.mark.rates
def test_the_error_against_direct_measurement(tmp_path: Path) -> None:
    """Told of parts that were measured as they are, and of some an octave of size away."""
    patterns = json.loads((EXAMPLES / "mixture.json").read_text())
    found = told(tmp_path, patterns, repeats=5, io_nodes="0,2")
    for job, most in (("both", 0.2), ("unlike", 0.5)):
        errors = [abs(one["error"]) for one in found["mixtures"] if one["job"] == job]
        assert len(errors) == 2
        assert max(errors) < most, job
