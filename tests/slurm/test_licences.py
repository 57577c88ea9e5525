"""Slurm itself holds I/O-heavy jobs back when the controller says that the file system is full."""

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from slurm.cluster import Cluster
from slurm.conftest import LICENCE
from slurm.site import PENSTOCK, WAIT, Site

from penstock.errors import InputError
from penstock.live.batch.licences import Licence, licences_to_hold_back
from penstock.live.protocol import messages
from penstock.live.protocol.job_record import JobRecord


@pytest.fixture(scope="module")
def site(short: Path, run: Path) -> Iterator[Site]:
    """A file system that one job at a time may use, and that is slow enough to see it."""
    options = ("--policy", "exclusive-fcfs", "--mode", "enforce")
    with Site(short / "full", run, *options, "--emulate", "targets=1,rate=8MiB/s") as site:
        yield site


@pytest.fixture
def clean(slurm: Cluster) -> Iterator[Cluster]:
    """A Slurm without reservations, jobs or licences in use."""
    yield slurm
    slurm.cancel_all()
    slurm.await_idle()
    penstock(slurm, "slurm", "licences", LICENCE, "--keep-back", "0")


def penstock(slurm: Cluster, *words: str | Path) -> dict[str, Any]:
    done = subprocess.run(
        [*PENSTOCK, *map(str, words), "--json"],
        env=slurm.environment(),
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def keep_back(slurm: Cluster, count: int) -> None:
    answer = penstock(slurm, "slurm", "licences", LICENCE, "--keep-back", str(count))
    assert answer["kept_back"] == count


def held(slurm: Cluster, job: str) -> bool:
    return slurm.state_of(job) == "PENDING" and slurm.reason_of(job) == "Licenses"


def has_ended(site: Site, job: str) -> bool:
    return site.job(job).state == "ended"


def test_a_job_waits_for_licences_that_are_kept_back(clean: Cluster) -> None:
    keep_back(clean, 3)
    heavy = clean.sbatch("true", "-L", "fs:1")
    light = clean.sbatch("true")
    assert clean.await_end(light) == "COMPLETED"
    clean.wait(lambda: held(clean, heavy), "held job")
    keep_back(clean, 2)
    assert clean.await_end(heavy) == "COMPLETED"


def test_jobs_that_have_their_licences_keep_them(clean: Cluster) -> None:
    running = clean.sbatch("sleep 60", "-L", "fs:2")
    clean.wait(lambda: clean.state_of(running) == "RUNNING", "running job")
    keep_back(clean, 3)
    waits = clean.sbatch("true", "-L", "fs:1")
    clean.wait(lambda: held(clean, waits), "held job")
    assert clean.state_of(running) == "RUNNING"
    keep_back(clean, 0)
    clean.wait(lambda: clean.state_of(waits) in {"RUNNING", "COMPLETED"}, "job let go")


def test_the_controller_keeps_the_count_in_step(clean: Cluster, site: Site) -> None:
    """One of two jobs that write waits for its turn: a licence is kept back as long as it does."""
    watch = ("slurm", "watch", "--state", site.state.folder, "--licence", LICENCE)
    once = (*watch, "--once", "--every", "0.1")
    write = "while dd if=/dev/zero of={} bs=1M count=4 conv=notrunc status=none; do :; done"
    jobs = [clean.sbatch(write.format(site.root / f"f{k}"), f"-Jw{k}") for k in range(2)]
    clean.wait(
        lambda: sorted(map(site.doing, jobs)) == [["transferring"], ["waiting"]],
        "waiting job",
    )
    assert penstock(clean, *once) == {"kept_back": 1}
    heavy = clean.sbatch("true", "-L", LICENCE)
    clean.wait(lambda: held(clean, heavy), "held job")
    clean.command("scancel", *jobs)
    for job in jobs:
        clean.wait(partial(has_ended, site, job), "end of the writers")
    assert penstock(clean, *once) == {"kept_back": 0}
    assert clean.await_end(heavy) == "COMPLETED"


def status(*doing: str, state: str = "running") -> messages.Status:
    jobs = [
        JobRecord(
            id=f"job.{k}",
            state=state,
            began=0.0,
            seconds=1.0,
            io_nodes=[],
            forwarded_bytes=0,
            direct_bytes=0,
            fail_opens=0,
            waits=0,
            waited_seconds=0.0,
            doing=does,
        )
        for k, does in enumerate(doing)
    ]
    return messages.Status(
        site="", jobs=jobs, io_nodes=[], forwarded_bytes=0, direct_bytes=0, fail_open_total=0
    )


def test_never_more_licences_are_kept_back_than_there_are() -> None:
    licence = Licence.parse("fs:2")
    assert licences_to_hold_back(status("computing", "transferring"), licence) == 0
    assert licences_to_hold_back(status("waiting", "transferring"), licence) == 1
    assert licences_to_hold_back(status(*["waiting"] * 5), licence) == 2


def test_a_job_that_waited_when_it_ended_waits_no_more() -> None:
    assert licences_to_hold_back(status("waiting", state="lost"), Licence.parse("fs:2")) == 0


@pytest.mark.parametrize("text", ["fs", "fs:", ":3", "fs:x", "fs:3,other:4", "a b:3", "fs:-1"])
def test_an_invalid_licence_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="like fs:8"):
        Licence.parse(text)
