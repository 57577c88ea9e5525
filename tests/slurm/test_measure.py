"""explore, patterns measure and tuner measure over the hosts of a real Slurm allocation.

All hosts are slurmd on one machine: they share its file system, clock and network.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from limits import HANG
from slurm.cluster import Cluster
from slurm.site import PENSTOCK

from penstock.data import windows
from penstock.learn.detection import samples

KIB = 1024
EXPLORE = (*PENSTOCK, "explore")


def pattern(operation: str, **more: object) -> dict[str, object]:
    return {
        "path": "tiny",
        "operation": operation,
        "number_of_files": "shared",
        "spatiality": "strided",
        "total_size": 256 * KIB,
        "request_size": 16 * KIB,
        "validation": True,
        **more,
    }


@pytest.fixture
def folder(slurm: Cluster, tmp_path: Path) -> Iterator[Path]:
    """A folder with a pattern file and a root; nothing may be left in the root or the queue."""
    slurm.await_idle()
    (tmp_path / "data").mkdir()
    tiny = {"name": "tiny", "processes": 4, "patterns": [pattern("write"), pattern("read")]}
    (tmp_path / "tiny.json").write_text(json.dumps({"phases": [tiny]}))
    yield tmp_path
    slurm.await_idle()
    assert list((tmp_path / "data").iterdir()) == []


def salloc(
    slurm: Cluster, folder: Path, hosts: int, *words: str | Path, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in an allocation."""
    return slurm.command(
        *("salloc", f"--nodes={hosts}", "--quiet", *words),
        cwd=str(folder),
        check=False,
        timeout=HANG,
        env_of=env,
    )


def explore(out: str, *more: str) -> tuple[str, ...]:
    words = ("tiny.json", "--root", "data", "--repeats", "1", "--coherent", "--json")
    return (*EXPLORE, *words, "--out", out, *more)


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_two_hosts_leave_the_files_of_one_with_ranks_on_both(slurm: Cluster, folder: Path) -> None:
    done = salloc(slurm, folder, 2, *explore("two", "--io-nodes", "0,1,2"))
    assert done.returncode == 0, done.stderr
    local = [*explore("one", "--io-nodes", "0,1,2")]
    local.remove("--coherent")
    subprocess.run(local, cwd=folder, check=True, capture_output=True, timeout=HANG)
    one, two = folder / "one", folder / "two"
    assert {file.name for file in two.iterdir()} == {file.name for file in one.iterdir()}
    for name in ("ranks.csv", "io-nodes.csv", "summary.csv", "operations.csv"):
        keys = ("phase", "processes", "io_nodes", "repeat", "operation", "rank", "bytes", "marked")
        kept = [
            Counter(tuple(row.get(key) for key in keys) for row in rows(at / name))
            for at in (one, two)
        ]
        assert kept[0] == kept[1], name
    hosts = {row["rank"]: row["host"] for row in rows(two / "ranks.csv")}
    assert hosts == {"0": "n0", "1": "n0", "2": "n1", "3": "n1"}
    by_two = [row for row in rows(two / "ranks.csv") if row["io_nodes"] == "2"]
    assert {(row["rank"], row["io_node"]) for row in by_two} == {
        *(("0", "0"), ("1", "1"), ("2", "0"), ("3", "1"))
    }
    work = [row for row in rows(two / "io-nodes.csv") if row["io_nodes"] == "2"]
    assert [(row["io_node"], row["host"], row["ranks"]) for row in work] == [
        *(("0", "n0", "2"), ("1", "n1", "2"))
    ]
    assert {(row["reads"], row["writes"]) for row in work} == {("8", "8")}
    assert {row["hosts"] for row in rows(two / "summary.csv")} == {"2"}
    assert json.loads((two / "curves.json").read_text())["hosts"] == ["n0", "n1"]


def test_ranks_in_turn_and_hosts_for_io_nodes_alone(slurm: Cluster, folder: Path) -> None:
    """Consecutive ranks share an I/O node (block), whichever hosts they are on."""
    more = ("--io-nodes", "2", "--rank-placement", "cyclic", "--io-node-hosts", "1")
    words = explore("out", *more, "--distribution", "block")
    done = salloc(slurm, folder, 3, *words)
    assert done.returncode == 0, done.stderr
    ranks = {(row["rank"], row["host"], row["io_node"]) for row in rows(folder / "out/ranks.csv")}
    assert ranks == {*(("0", "n0", "0"), ("1", "n1", "0"), ("2", "n0", "1"), ("3", "n1", "1"))}
    assert {row["host"] for row in rows(folder / "out/io-nodes.csv")} == {"n2"}
    again = salloc(slurm, folder, 2, *explore("out", "--io-nodes", "2"))
    assert again.returncode == 2
    assert "belongs to another run" in again.stderr


def test_patterns_are_measured_from_a_batch_script(slurm: Cluster, folder: Path) -> None:
    words = (
        *(*PENSTOCK, "patterns", "measure", "--out", "seen.csv", "--root", "data", "--coherent"),
        *("--sizes", "4KiB", "--processes", "2", "--io-nodes", "1", "--interval", "50 ms"),
        *("--seconds", "500 ms", "--keep", "2", "--volume", "128 MiB", "--json"),
    )
    text = " ".join(f"'{word}'" for word in words)
    job = slurm.sbatch(f"cd '{folder}' && {text} > out.json 2> err", "--nodes=2")
    state = slurm.await_end(job, within=HANG)
    assert state == "COMPLETED", (folder / "err").read_text()
    summary = json.loads((folder / "out.json").read_text())
    assert (summary["hosts"], summary["emulated"], summary["runs"]) == (["n0", "n1"], None, 6)
    seen = samples.read(folder / "seen.csv")
    assert len(seen) == 12
    assert {one.hosts for one in seen} == {"n0 n1"}
    assert {one.observation.clients for one in seen} == {2}, "ranks of both hosts at an I/O node"


def test_windows_are_measured(slurm: Cluster, folder: Path) -> None:
    words = (
        *(*PENSTOCK, "tuner", "measure", "--out", "windows.csv", "--root", "data", "--coherent"),
        *("--processes", "2", "--io-nodes", "1", "--sizes", "4KiB", "--windows", "1 ms"),
        *("--seconds", "1 s", "--keep", "2", "--volume", "128 MiB", "--json"),
    )
    done = salloc(slurm, folder, 2, *words)
    assert done.returncode == 0, done.stderr
    series = windows.read(folder / "windows.csv")
    assert len(series) == 6
    assert {(one.hosts, one.window) for one in series} == {("n0 n1", 1e-3)}
    assert json.loads(done.stdout)["hosts"] == ["n0", "n1"]


HIDING = """#!/bin/sh
# As srun, but on n1 the root is another, empty directory.
for word; do
    shift
    [ "$word" = "$PYTHON" ] && set -- "$@" unshare --mount sh -c \
        'test "$SLURMD_NODENAME" != n1 || mount -t tmpfs none "$HIDDEN"; exec "$0" "$@"'
    set -- "$@" "$word"
done
exec "$SRUN" "$@"
"""


def test_a_host_that_does_not_see_the_root_is_named(slurm: Cluster, folder: Path) -> None:
    shim = folder / "bin/srun"
    shim.parent.mkdir()
    shim.write_text(HIDING)
    shim.chmod(0o755)
    real = shutil.which("srun")
    assert real is not None
    environment = {
        "PATH": f"{shim.parent}:{os.environ['PATH']}",
        "SRUN": real,
        "PYTHON": sys.executable,
        "HIDDEN": str(folder / "data"),
    }
    done = salloc(slurm, folder, 2, *explore("out", "--io-nodes", "0"), **environment)
    assert done.returncode == 2
    assert f"--root {folder}/data: host n1: it does not see" in done.stderr
    assert "give a directory that all hosts see" in done.stderr


def test_a_cancelled_allocation_loses_no_finished_run(slurm: Cluster, folder: Path) -> None:
    """The next allocation measures the rest."""
    wall = pattern("write", total_size=1 << 40, stone_wall=0.5, validation=False)
    phase = {"name": "wall", "processes": 2, "patterns": [wall]}
    (folder / "tiny.json").write_text(json.dumps({"phases": [phase]}))
    kept = folder / "out/runs.jsonl"
    words = ("salloc", "--nodes=2", "--job-name=cancelled", *explore("out", "--io-nodes", "0,1"))
    with subprocess.Popen(
        list(map(str, words)),
        cwd=folder,
        env=slurm.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as first:
        slurm.wait(lambda: kept.exists() and kept.read_text().count("\n") > 1, "finished run")
        slurm.command("scancel", "--name=cancelled")
        _, errors = first.communicate(timeout=HANG)
    assert first.returncode == 1, errors
    assert "penstock: error: host n" in errors
    assert "Traceback" not in errors
    before = kept.read_text().splitlines()
    slurm.await_idle()
    assert list((folder / "data").iterdir()) == []
    done = salloc(slurm, folder, 2, *explore("out", "--io-nodes", "0,1"))
    assert done.returncode == 0, done.stderr
    after = kept.read_text().splitlines()
    assert after[: len(before)] == before
    assert len(after) == 1 + 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--mpi",), "--mpi works on one host; add --no-slurm"),
        (("--emulate", "targets=2"), "--emulate works on one host; add --no-slurm"),
        (("--io-node-hosts", "2"), "the allocation has 2 hosts, and ranks need one"),
    ],
)
def test_what_works_on_one_host_only_is_refused(
    slurm: Cluster, folder: Path, options: tuple[str, ...], message: str
) -> None:
    in_two = {"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "n[0-1]"}
    words = explore("out", *options)
    done = slurm.command(*words, check=False, cwd=str(folder), env_of=in_two)
    assert done.returncode == 2
    assert message in done.stderr


def test_no_slurm_measures_on_this_host_alone(slurm: Cluster, folder: Path) -> None:
    words = list(explore("out", "--io-nodes", "1", "--no-slurm"))
    words.remove("--coherent")
    done = salloc(slurm, folder, 2, *words)
    assert done.returncode == 0, done.stderr
    assert len({row["host"] for row in rows(folder / "out/ranks.csv")}) == 1


def test_outside_an_allocation_slurm_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("SLURM_")]:
        monkeypatch.delenv(name)
    words: list[Any] = [*explore("out", "--io-nodes", "0", "--slurm")]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--slurm: this is no allocation of Slurm; start it in" in done.stderr
