"""Curves and demands that a site learns from real jobs, on an emulation whose truth is known."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from limits import HANG
from live.controller.turn_deployment import deployed

from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.state_directory import StateDirectory

PENSTOCK = [sys.executable, "-m", "penstock.cli"]
PROGRAM = Path(__file__).parents[1] / "programs" / "phases_of_writers.py"
LINK = 8 << 20
"""Bytes per second of an I/O node's link: little, so that a busy machine keeps up."""
EMULATION = "targets=8,count=8,stripe=64KiB,rate=100MiB/s,latency=0s,switch=0s,io-node-link=8MiB/s"
MIB = 1 << 20
MOST_RUNS = 8
"""Runs of an application after which all numbers of I/O nodes have been tried."""


class Site:
    """Four I/O nodes, with an application of its own name for each program that is copied."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state = folder, StateDirectory(folder / "s")
        (folder / "data").mkdir()

    def penstock(self, verb: str, *args: str) -> str:
        words = [*PENSTOCK, *verb.split(), "--state", str(self.state.folder), *args]
        done = subprocess.run(words, capture_output=True, text=True, timeout=HANG, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def up(self, *options: str) -> None:
        self.penstock(
            *("up", "--root", str(self.folder / "data"), "--io-nodes", "4"),
            *("--mode", "enforce", "--policy", "fair-share", "--emulate", EMULATION, *options),
        )

    def program(self, name: str) -> str:
        """Return a program that is an application of its own."""
        path = self.folder / name
        shutil.copy(PROGRAM, path)
        path.write_text(f"#!{sys.executable}\n{path.read_text()}")
        path.chmod(0o755)
        return str(path)

    def command(self, name: str, *, mebibytes: int, phases: int, compute: float) -> list[str]:
        data = str(self.folder / "data")
        return [self.program(name), data, "4", str(mebibytes), str(phases), str(compute)]

    def run(self, name: str, *options: str, **of_command: Any) -> None:
        self.penstock("run", *options, "--", *self.command(name, **of_command))

    def start(self, name: str, *options: str, **of_command: Any) -> "subprocess.Popen[bytes]":
        words = [*PENSTOCK, "run", "--state", str(self.state.folder), *options, "--"]
        return subprocess.Popen([*words, *self.command(name, **of_command)])

    def curves(self) -> dict[str, Any]:
        shown = json.loads(self.penstock("curves show", "--json"))
        return {one["application"]: one for one in shown}


def is_about(point: dict[str, float], io_nodes: int) -> bool:
    """Tell whether a point is that of this number of links; a busy machine shows less."""
    return 0.6 * io_nodes * LINK < point["median"] < 1.15 * io_nodes * LINK


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    launcher.down(made.state)


def test_a_curve_has_what_was_measured_with_each_number_of_io_nodes(site: Site) -> None:
    """The fault: with 4, then with 1, b(1) was b(4) x 0.95^phases, three times too much."""
    site.up()
    for count in ("4", "1"):
        site.run("app", "--io-nodes", count, mebibytes=8, phases=3, compute=0.4)
    [known] = site.curves().values()
    assert set(known) >= {"user", "application", "nodes", "curve", "source"}
    assert (known["application"], known["nodes"], known["source"]) == ("app", 1, "observed")
    assert list(known["curve"]) == ["1", "4"]
    for count, point in known["curve"].items():
        assert point["observations"] == 3
        assert point["low"] <= point["median"] <= point["high"]
        assert is_about(point, int(count)), (count, point)
    assert known["volume"]["median"] == 32 * MIB
    assert 0.3 < known["compute"]["median"] < 2.0
    site.penstock("down")
    assert site.curves() == {"app": known}


def test_a_job_that_is_moved_teaches_of_each_number_that_it_had(site: Site) -> None:
    """The fault: a job that was moved once taught nothing."""
    site.up()
    moved = site.start("moved", "--io-nodes", "2", mebibytes=4, phases=6, compute=0.5)
    try:
        until_phases(site, "moved", 2)
        site.penstock("remap", "moved", "--io-nodes", "0")
        assert moved.wait(HANG) == 0
    finally:
        moved.kill()
        moved.wait(HANG)
    curve = site.curves()["moved"]["curve"]
    assert list(curve) == ["1", "2"]
    # All but the one, if any, during which it was moved.
    assert sum(point["observations"] for point in curve.values()) in (5, 6)
    assert is_about(curve["1"], 1)
    assert is_about(curve["2"], 2)


def test_phases_beside_others_make_no_point(tmp_path: Path) -> None:
    """The fault: a program learnt 115 MB/s alone, and 23 MB/s beside three others."""
    with deployed(tmp_path) as site:
        site.up("--policy", "fair-share")
        jobs = [site.obedient(name, "--application", "writer") for name in ("first", "second")]
        for step in ("mark", "write 6", "end"):
            for job in jobs:
                job.do(step)
        site.until("second", lambda job: job.doing == "computing")
        for step in ("mark", "write 20", "end"):
            jobs[0].do(step)
        for job in jobs:
            job.finish()
        [known] = json.loads(site.penstock("curves show", "--json"))
    assert known["volume"]["observations"] == 3
    assert [point["observations"] for point in known["curve"].values()] == [1]


def until_phases(site: Site, name: str, phases: int) -> None:
    for _ in range(round(HANG / 0.05)):
        status = launcher.ask(site.state, messages.GetStatus(), messages.Status)
        if any(job.name == name and job.phases >= phases for job in status.jobs):
            return
        time.sleep(0.05)
    pytest.fail(f"{name} has no {phases} phases")


def test_t_cpu_live_gives_what_allocate_gives_for_the_same_knowledge(site: Site) -> None:
    """The fault: volume and compute were never told, so that two jobs had 3 and 1 for 4 and 4.

    Nobody asks for a number of I/O nodes: the site tries them, run by run. Jobs that transfer for
    longer than they compute have one each by n-sys, all by best-bandwidth, and by t-cpu what the
    volume and the compute time of their phases say.
    """
    # Runs of a few seconds: with settle = 0 none of them counts as short.
    settle = ("--set", "allocation.settle=0")
    site.up("--allocation", "t-cpu", "--set", "site.nodes=4", *settle)
    sizes = {"large": {"mebibytes": 4}, "small": {"mebibytes": 1}}
    for name, size in sizes.items():
        for _ in range(MOST_RUNS):
            site.run(name, **size, phases=2, compute=0.3)
            known = site.curves()
            if list(known[name]["curve"]) == ["1", "2", "4"]:
                break
        else:
            pytest.fail(f"{name} has {known[name]['curve']} after {MOST_RUNS} runs")
    expected = allocate(site, "t-cpu", known)
    assert expected != allocate(site, "n-sys", known)
    jobs = [site.start(name, **size, phases=20, compute=1.0) for name, size in sizes.items()]
    try:
        assert counts_of(site, 2) == expected
    finally:
        for job in jobs:
            job.terminate()
            job.wait(HANG)


def allocate(site: Site, policy: str, known: dict[str, Any]) -> dict[str, int]:
    """Return what `penstock allocate` gives for what `penstock curves show` says."""
    offline = site.folder / "jobs.json"
    jobs = [
        {
            "id": name,
            "nodes": one["nodes"],
            "curve": {n: point["median"] for n, point in one["curve"].items()},
            "volume": one["volume"]["median"],
            "compute": one["compute"]["median"],
        }
        for name, one in known.items()
    ]
    offline.write_text(json.dumps({"jobs": jobs}))
    words = ["allocate", str(offline), "--io-nodes", "4", "--nodes", "4", "--policy", policy]
    done = subprocess.run([*PENSTOCK, *words, "--json"], capture_output=True, check=True)
    given: dict[str, int] = json.loads(done.stdout)["allocation"]
    return given


def counts_of(site: Site, jobs: int) -> dict[str, int]:
    for _ in range(round(HANG / 0.05)):
        status = launcher.ask(site.state, messages.GetStatus(), messages.Status)
        running = {job.name: len(job.io_nodes) for job in status.jobs if job.state == "running"}
        if len(running) == jobs:
            return running
        time.sleep(0.05)
    pytest.fail("the jobs do not run")
