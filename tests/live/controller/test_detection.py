"""Which application a report of an I/O node is of, and what is kept of its access pattern."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from limits import HANG

from penstock.learn.detection.model import PLAUSIBLE
from penstock.learn.observations import History, ObservedPhase
from penstock.live.controller.detection import Detection
from penstock.live.controller.job_table import JobEntry
from penstock.live.deployment import launcher
from penstock.live.protocol.messages import BeginJob
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of
from penstock.live.store import Family, Knowledge, Store, WriteBehind
from penstock.model import Context

PENSTOCK = [sys.executable, "-m", "penstock.cli"]
MIB = 2**20


def entry(id: str, executable: str) -> JobEntry:
    begin = BeginJob(name=id, pid=1, command=[executable], user="ann", executable=executable)
    return JobEntry(id=id, serial=1, begin=begin, began=0.0)


class Kept:
    """A detection that follows three jobs of two applications, and what it keeps."""

    def __init__(self) -> None:
        jobs = {"a": entry("a", "ior"), "b": entry("b", "ior"), "c": entry("c", "solver")}
        self.kept: list[tuple[str, str, int]] = []
        self.detection = Detection(jobs, lambda job, *kind: self.kept.append((job.id, *kind)))

    def of(self, moved: int, **by_job: int) -> str | None:
        seen = replace(PLAUSIBLE, read_bytes=0, write_bytes=moved)
        names = {name.replace("_", "/"): count for name, count in by_job.items()}
        job = self.detection.application(0, seen, names)
        return None if job is None else job.begin.executable


def test_a_report_is_of_the_application_that_moved_almost_all() -> None:
    site = Kept()
    assert site.of(100, a=100) == "ior"
    assert site.of(100, a=150, b=50) == "ior"  # both are its jobs
    assert site.of(100, a=150, b=50, c=100) == "solver"  # since the last report
    assert site.of(100, a=190, b=50, c=160) is None
    assert site.of(100, a=190, b=145, c=165) == "ior"
    assert site.of(0, a=190, b=145, c=165) is None


def test_bytes_of_jobs_that_have_left_are_nobodys() -> None:
    """The I/O node no longer names the job that moved most of them."""
    assert Kept().of(1000, a=100) is None
    assert Kept().of(100, gone=100) is None


def test_jobs_of_several_users_have_their_user_in_front() -> None:
    assert Kept().of(100, **{"1000_a": 100}) == "ior"


def test_an_io_node_that_is_new_counts_from_zero() -> None:
    site = Kept()
    assert site.of(1000, a=1000) == "ior"
    site.detection.down(0)
    assert site.of(100, a=100) == "ior"


def context(pattern: str, size: int = MIB) -> Context:
    return Context(operation="write", pattern=pattern, size=size, load=1)


def test_the_class_is_the_one_that_most_bytes_were_in() -> None:
    site = Kept()
    job = entry("a", "ior")
    for pattern, moved in [
        ("shared-strided", 10),
        ("file-per-process", 100),
        ("shared-strided", 20),
        ("unknown", 1000),
    ]:
        site.detection.detected(job, context(pattern), moved)
    assert [pattern for _, pattern, _ in site.kept] == [
        "shared-strided",
        "file-per-process",
        "file-per-process",  # nothing is kept of what is mostly unknown
    ]


WRITER = """
import os, sys, time
rank = os.fork()
fd = os.open(sys.argv[1] + str(bool(rank)), os.O_CREAT | os.O_WRONLY)
for k in range(100000):
    if os.path.exists(sys.argv[2]):
        break
    os.pwrite(fd, bytes(1 << 18), (k % 64) << 18)
    time.sleep(0.005)
if rank:
    os.wait()
"""
"""Two processes that write a file each, until told to stop."""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    made = StateDirectory(tmp_path / "s")
    made.create()
    (tmp_path / "data").mkdir()
    yield made
    launcher.down(made)


def penstock(*words: object) -> str:
    command = [*PENSTOCK, *map(str, words)]
    done = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)
    return done.stdout


def up(state: StateDirectory, *options: str) -> None:
    data = state.folder.parent / "data"
    penstock("up", "--root", data, "--io-nodes", "2", "--state", state.folder, *options)


def known(state: StateDirectory) -> dict[str, Any]:
    shown = json.loads(penstock("curves", "show", "--json", "--state", state.folder))
    return {one["application"]: one for one in shown}


def run_until(state: StateDirectory, name: str, done: Any, *options: str) -> None:
    """Run a writer until what is known of it satisfies a condition."""
    data, stop = state.folder.parent / "data", state.folder.parent / f"stop-{name}"
    words = [*PENSTOCK, "run", "--state", str(state.folder), "--application", name, *options, "--"]
    writer = [sys.executable, "-c", WRITER, str(data / name), str(stop)]
    with subprocess.Popen([*words, *writer]) as job:
        try:
            for _ in range(round(HANG / 0.2)):
                if done():
                    return
                try:
                    job.wait(0.2)
                    break
                except subprocess.TimeoutExpired:
                    pass
            raise AssertionError(known(state))
        finally:
            stop.touch()
            job.wait(HANG)


@pytest.mark.parametrize("options", [(), ("--tune", "depth")], ids=["untuned", "tuned"])
def test_the_pattern_of_an_application_is_kept(
    state: StateDirectory, options: tuple[str, ...]
) -> None:
    """The fault: the column was there, and never written; and nothing was detected untuned.

    On one I/O node: one that sees a single process cannot tell whether others share its file.
    """
    up(state, "--set", "tuning.interval=200 ms", *options)

    def is_kept() -> bool:
        return known(state).get("writer", {}).get("pattern") is not None

    run_until(state, "writer", is_kept, "--io-nodes", "1")
    penstock("down", "--state", state.folder)
    shown = known(state)["writer"]
    assert (shown["pattern"], shown["request_size"]) == ("file-per-process", 1 << 18)


def test_a_class_makes_a_prior_that_explain_calls_so(state: StateDirectory) -> None:
    """An application of known class without any bandwidth: where-known decides by the prior.

    It is made of two other applications of the same user.
    """
    user = name_of(state.folder.stat().st_uid)
    with WriteBehind(Store(f"sqlite:///{state.store}")) as keeper:
        history = History()
        for count, bandwidth in ((1, 10 * MIB), (2, 19 * MIB)):
            phase = ObservedPhase(bytes=bandwidth, seconds=1.0, alone=True)
            history = history.plus(count, phase)
        other = Knowledge(history=history, pattern="shared-strided", request_size=MIB)
        for name in ("one", "another"):
            keeper.learn(Family(user=user, executable=name, nodes=1), other)
    up(state, "--mode", "enforce", "--policy", "fair-share")
    text = ""

    def explained() -> bool:
        nonlocal text
        try:
            text = " ".join(penstock("explain", "job", "--state", state.folder).split())
        except subprocess.CalledProcessError:
            return False
        return True

    hint = ("--name", "job", "--hint", "pattern=shared-strided,request=1MiB")
    run_until(state, "new", explained, *hint)
    assert "It has had 2 I/O nodes (0, 1)" in text
    assert (
        "where-known gave the number from its curve (a prior at 1, 2: the median of 2 applications "
        "with shared-strided, large requests)"
    ) in text
    assert "a prior was used" in text
