"""FORGE's files: six phases, open, write, close, open, read, close, replayed as FORGE does.

The files here are our own, in the form of FORGE's. With PENSTOCK_FORGE_FILES, a folder, FORGE's own
files in it are replayed too.
"""

import csv
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from limits import HANG

from penstock.live.measure import access_patterns

OPERATIONS = ["open", "write", "close", "open", "read", "close"]
LAYOUTS = {
    "file-per-process": ("individual", "contiguous"),
    "shared-contiguous": ("shared", "contiguous"),
    "shared-strided": ("shared", "strided"),
}
KIB = 1024


def six_phases(layout: str, **changes: Any) -> dict[str, Any]:
    """Return a file in FORGE's form; `changes` are of its write and its read."""
    files, spatiality = LAYOUTS[layout]

    def pattern(operation: str) -> dict[str, Any]:
        own = {"path": "/pfs/experiment", "operation": operation, "number_of_files": files}
        if operation in {"open", "close"}:
            return own
        data = {"spatiality": spatiality, "total_size": 512 * KIB, "request_size": 16 * KIB}
        return own | data | {"validation": 1, "direct_io": 0, "stone_wall": 60} | changes

    return {
        "forwarders": 2,
        "handlers": 1,
        "dispatchers": 16,
        "phases": [{"repetitions": 1, "patterns": [pattern(each)]} for each in OPERATIONS],
    }


FOLDER = os.environ.get("PENSTOCK_FORGE_FILES")
FORGE_OWN = sorted(Path(FOLDER).rglob("*.json")) if FOLDER else []


@pytest.fixture(params=[*LAYOUTS, *FORGE_OWN], ids=str)
def forge_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of our own, and each of FORGE's."""
    if isinstance(request.param, Path):
        return request.param
    return write(tmp_path, six_phases(request.param), f"{request.param}.json")


def write(folder: Path, content: dict[str, Any], name: str = "experiment.json") -> Path:
    file = folder / name
    file.write_text(json.dumps(content))
    return file


def explore(file: Path, root: Path, *args: str) -> subprocess.CompletedProcess[str]:
    out = file.parent / "explored" if file.is_relative_to(root.parent) else root.parent / "explored"
    command = ["penstock.cli", "explore", str(file), "--root", str(root), "--out", str(out)]
    return subprocess.run(
        [sys.executable, "-m", *command, "--repeats", "1", *args],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )


def table(root: Path, name: str) -> list[dict[str, str]]:
    with (root.parent / "explored" / name).open() as file:
        return list(csv.DictReader(file))


def test_six_phases_are_one_job_named_after_the_file(forge_file: Path) -> None:
    patterns, ignored = access_patterns.read(forge_file)
    assert ignored == ["handlers"]
    (job,) = patterns.phases
    assert job.name == forge_file.stem
    assert [pattern.operation for pattern in job.patterns] == OPERATIONS


def test_they_are_replayed_in_order_and_read_what_was_written(forge_file: Path, root: Path) -> None:
    """Nothing writes the file but the write phase: reads that all succeed read what it wrote."""
    result = explore(forge_file, root, "--json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    (point,) = answer["points"]
    assert (point["job"], point["marked"], answer["marked"]) == (forge_file.stem, 0, [])
    ranks = table(root, "ranks.csv")
    assert [row["operation"] for row in ranks if row["rank"] == "0"] == OPERATIONS
    written, read = (
        sum(int(row["bytes"]) for row in ranks if row["operation"] == operation)
        for operation in ("write", "read")
    )
    patterns, _ = access_patterns.read(forge_file)
    assert written == read == patterns.phases[0].patterns[1].total_size


def test_write_and_read_have_their_own_bandwidth_and_quartiles(root: Path, tmp_path: Path) -> None:
    file = write(tmp_path, six_phases("shared-contiguous"))
    result = explore(file, root, "--repeats", "3", "--json")
    assert result.returncode == 0, result.stderr
    rows = {row["operation"]: row for row in table(root, "operations.csv")}
    assert list(rows) == ["write", "read"]
    ranks = table(root, "ranks.csv")
    for operation, row in rows.items():
        times: dict[str, list[float]] = {}
        for each in ranks:
            if each["operation"] == operation:
                times.setdefault(each["repeat"], []).append(float(each["seconds"]))
        bandwidths = [512 * KIB / max(repeat) / 1e6 for repeat in times.values()]
        figures = [float(row[name]) for name in ("minimum", "median", "maximum")]
        assert figures == pytest.approx(sorted(bandwidths))
        assert figures[0] <= float(row["q1"]) <= figures[1] <= float(row["q3"]) <= figures[2]
        every = [seconds for repeat in times.values() for seconds in repeat]
        assert float(row["fastest_rank"]) == pytest.approx(min(every))
        assert float(row["median_rank"]) == pytest.approx(median(every))
        assert float(row["slowest_rank"]) == pytest.approx(max(every))
        assert int(row["bytes"]) == 512 * KIB
    points = json.loads(result.stdout)["operation_points"]
    assert [point["median"] for point in points] == [float(row["median"]) for row in rows.values()]
    curves = json.loads((root.parent / "explored" / "curves.json").read_text())["operations"]
    assert {one["operation"]: one["curve"]["2"] for one in curves} == {
        name: pytest.approx(float(row["median"])) for name, row in rows.items()
    }


def test_scheduler_parameters_are_set(root: Path, tmp_path: Path) -> None:
    file = write(tmp_path, six_phases("shared-strided"))
    parameters = ("--set", "io-node.window=8 ms", "--set", "io-node.aggregation=64 KiB")
    result = explore(file, root, "--scheduler", "twins", *parameters)
    assert result.returncode == 0, result.stderr
    header = json.loads((root.parent / "explored" / "runs.jsonl").read_text().splitlines()[0])
    settings = json.loads(header["settings"])
    expected = {"scheduler": "twins", "window": 0.008, "aggregation": 64 * KIB, "depth": 16}
    assert {name: settings[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("io-node.windw=8 ms", "io-node.windw"),
        ("io-node.window=soon", "soon"),
        ("sharing.policy=set-10", "sharing.policy"),
    ],
)
def test_a_parameter_that_cannot_be_set_is_refused(
    root: Path, tmp_path: Path, setting: str, message: str
) -> None:
    result = explore(write(tmp_path, six_phases("shared-strided")), root, "--set", setting)
    assert (result.returncode, message in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("distribution", "together"),
    [("block", [{0, 1, 2}, {3, 4}]), ("cyclic", [{0, 2, 4}, {1, 3}])],
)
def test_which_rank_went_where_and_what_each_io_node_did_is_kept(
    root: Path, tmp_path: Path, distribution: str, together: list[set[int]]
) -> None:
    """Five ranks of six requests each, over two I/O nodes."""
    file = write(tmp_path, six_phases("shared-strided", total_size=480 * KIB))
    result = explore(file, root, "--processes", "5", "--distribution", distribution)
    assert result.returncode == 0, result.stderr
    nodes: dict[str, set[int]] = {}
    for row in table(root, "ranks.csv"):
        nodes.setdefault(row["io_node"], set()).add(int(row["rank"]))
    assert sorted(nodes.values(), key=len, reverse=True) == together
    work = {row["io_node"]: row for row in table(root, "io-nodes.csv")}
    assert work.keys() == nodes.keys() == {"0", "1"}
    for number, ranks in nodes.items():
        requests = 6 * len(ranks)
        assert int(work[number]["ranks"]) == len(ranks)
        assert int(work[number]["writes"]) == int(work[number]["reads"]) == requests
        assert int(work[number]["write_bytes"]) == requests * 16 * KIB
        assert int(work[number]["read_bytes"]) == requests * 16 * KIB


def test_direct_ranks_have_no_io_node(root: Path, tmp_path: Path) -> None:
    file = write(tmp_path, six_phases("file-per-process"))
    result = explore(file, root, "--io-nodes", "0")
    assert result.returncode == 0, result.stderr
    assert Counter(row["io_node"] for row in table(root, "ranks.csv")) == {"": 4 * 6}
    assert table(root, "io-nodes.csv") == []


def test_a_write_that_its_stone_wall_ended_is_read_as_far_as_it_came(
    root: Path, tmp_path: Path
) -> None:
    """4 MiB at 2 MiB/s would take two seconds, the stone wall is at a quarter of one."""
    spec = "targets=1,rate=2MiB/s,latency=0s,switch=0s"
    content = six_phases("file-per-process", total_size=4096 * KIB)
    content["phases"][1]["patterns"][0]["stone_wall"] = 0.25
    result = explore(write(tmp_path, content), root, "--emulate", spec)
    assert result.returncode == 0, result.stderr
    moved = {
        operation: [
            int(r["bytes"]) for r in table(root, "ranks.csv") if r["operation"] == operation
        ]
        for operation in ("write", "read")
    }
    assert sum(moved["write"]) < 4096 * KIB
    assert moved["read"] == moved["write"]
