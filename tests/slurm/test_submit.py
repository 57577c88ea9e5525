"""A submission is told the partition with the least I/O conflict, and is never refused for it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm.cluster import Cluster
from slurm.site import Site
from slurm.test_licences import penstock

from penstock.live.batch.queue import write_loads

MIB = 2**20


@pytest.fixture(autouse=True)
def _clean(slurm: Cluster, conflicts: Path) -> Iterator[None]:
    yield
    conflicts.unlink(missing_ok=True)
    slurm.cancel_all()


def submit(slurm: Cluster, *options: str) -> tuple[str, str]:
    """Submit a job; return what the user is told, and the job's partition."""
    words = ("sbatch", "--parsable", "--output=/dev/null", *options)
    done = slurm.command(*words, input="#!/bin/sh\ntrue\n")
    description = slurm.scontrol("show", "job", done.stdout.strip())
    return done.stderr, description.split("Partition=")[1].split()[0]


def test_the_better_partition_is_named_and_the_job_stays(slurm: Cluster, conflicts: Path) -> None:
    write_loads(conflicts, {"batch": 800 * MIB, "old": 3 * MIB})
    message, partition = submit(slurm)
    assert "partition old has the least I/O now (3 MiB/s, batch has 800)" in message
    assert partition == "batch"


def test_a_job_that_asks_for_it_moves(slurm: Cluster, conflicts: Path) -> None:
    write_loads(conflicts, {"batch": 800 * MIB, "old": 3 * MIB})
    message, partition = submit(slurm, "--comment=penstock=auto")
    assert "moved to partition old" in message
    assert partition == "old"


@pytest.mark.parametrize("options", [(), ("--comment=penstock=auto",)])
@pytest.mark.parametrize("scores", [{"batch": 1.0, "old": 2.0}, {"batch": 5.0, "old": 5.0}])
def test_the_best_partition_needs_no_word(
    slurm: Cluster, conflicts: Path, scores: dict[str, float], options: tuple[str, ...]
) -> None:
    write_loads(conflicts, scores)
    message, partition = submit(slurm, *options)
    assert "penstock" not in message
    assert partition == "batch"


WRONG = {
    "missing": None,
    "empty": b"",
    "old": b"# 1000\nbatch 9\nold 1\n",
    "binary": bytes(range(256)) * 64,
    "unknown": b"# %d\nelsewhere 0\n",
    "part": b"# %d\nold 0\n",
    "negative": b"# %d\nbatch -5\nold x\n",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_file_refuses_nothing(slurm: Cluster, conflicts: Path, wrong: str) -> None:
    content = WRONG[wrong]
    if content is not None:
        conflicts.write_bytes(content.replace(b"%d", b"%d" % time.time()))
    message, partition = submit(slurm, "--comment=penstock=auto")
    assert "penstock" not in message
    assert partition == "batch"


def test_a_comment_of_the_users_own_stays(slurm: Cluster) -> None:
    job = slurm.sbatch("true", "--comment=my own")
    assert "Comment=my own " in slurm.scontrol("show", "job", job).replace("\n", " ")


def test_the_scores_are_what_running_jobs_move(
    slurm: Cluster, short: Path, run: Path, conflicts: Path
) -> None:
    with Site(short / "scores", run) as site:
        write = (
            f"while dd if=/dev/zero of={site.root}/f bs=1M count=4 status=none; do sleep 0.1; done"
        )
        job = slurm.sbatch(write, "-p", "old")
        slurm.wait(lambda: site.forwards(job), "forwarded bytes")
        # Counters come once a second.
        watch = ("slurm", "watch", "--state", site.state.folder, "--conflicts", conflicts)
        scores = penstock(slurm, *watch, "--once", "--every", "1.5")["conflicts"]
        assert scores["old"] > MIB
        assert scores["batch"] == 0
        assert "old" not in submit(slurm)[0]
        assert "partition batch has the least" in submit(slurm, "-p", "old")[0]
        slurm.cancel_all()
        slurm.await_idle()
