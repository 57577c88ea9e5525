"""Curves predicted from base patterns, compared with a measurement of the mixture."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from limits import COMPUTING

EXAMPLES = Path(__file__).parents[3] / "examples"
PENSTOCK = (sys.executable, "-m", "penstock.cli")
EMULATED = "targets=4,count=4,rate=80MiB/s,latency=2ms,switch=0"
"""Slow enough for two busy cores: the file system is the bottleneck."""


def measure_and_profile(
    folder: Path, patterns: dict[str, Any], *, repeats: int, io_nodes: str
) -> Any:
    """Measure, and return the result of `penstock profile`."""
    (folder / "data").mkdir()
    (folder / "patterns.json").write_text(json.dumps(patterns))
    explore = ("explore", "patterns.json", "--root", "data", "--out", "found")
    size = ("--io-nodes", io_nodes, "--repeats", str(repeats))
    _run(folder, *explore, *size, "--emulate", EMULATED)
    return json.loads(_run(folder, "profile", "--curves", "found/curves.json", "--json"))


def _run(folder: Path, *args: str) -> str:
    return subprocess.run(
        [*PENSTOCK, *args],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=COMPUTING,
    ).stdout


def test_a_mixture_is_predicted_from_its_measured_parts(tmp_path: Path) -> None:
    """The results name the patterns of each curve, and the times of parts add up."""
    patterns = json.loads((EXAMPLES / "mixture.json").read_text())
    patterns["phases"] = patterns["phases"][:3]
    for phase in patterns["phases"]:
        for pattern in phase["patterns"]:
            pattern["total_size"] //= 8
    result = measure_and_profile(tmp_path, patterns, repeats=1, io_nodes="1")
    (one,) = result["mixtures"]
    assert result["emulated"] == EMULATED
    assert (one["job"], one["io_nodes"], one["octaves"]) == ("both", 1, 0)
    curves = json.loads((tmp_path / "found" / "curves.json").read_text())
    read, written = curves["patterns"]["both"]
    assert (read["operation"], read["volume"]) == ("read", 2 << 20)
    assert (written["layout"], written["volume"]) == ("shared", 6 << 20)
    bandwidth = {job["id"]: job["curve"]["1"] for job in curves["jobs"]}
    seconds = 2 / bandwidth["restart"] + 6 / bandwidth["checkpoint"]
    assert one["told"] == pytest.approx(8 / seconds)
    assert one["error"] == pytest.approx(one["told"] / bandwidth["both"] - 1)


@pytest.mark.rates
def test_the_error_against_direct_measurement(tmp_path: Path) -> None:
    """Predicted from parts of the same request size, and from parts an octave away."""
    patterns = json.loads((EXAMPLES / "mixture.json").read_text())
    result = measure_and_profile(tmp_path, patterns, repeats=5, io_nodes="0,2")
    for job, limit in (("both", 0.2), ("unlike", 0.5)):
        errors = [abs(one["error"]) for one in result["mixtures"] if one["job"] == job]
        assert len(errors) == 2
        assert max(errors) < limit, job
