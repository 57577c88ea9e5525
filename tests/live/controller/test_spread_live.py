"""Jobs of one process spread over their I/O nodes, whatever begins between them."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from live.controller.turn_deployment import Deployed, ScriptedJob

WRITERS, MIB = 8, 4


@contextmanager
def _idle(site: Deployed, names: list[str]) -> Iterator[list[ScriptedJob]]:
    """Run jobs that do no I/O."""
    jobs = [site.obedient(name) for name in names]
    yield jobs
    for job in jobs:
        job.finish()


def _writing(site: Deployed, name: str) -> ScriptedJob:
    """Run a job that writes, and runs on; return once the controller knows that it has written."""
    writer = site.obedient(name)
    writer.do(f"write {MIB}")
    site.until(name, lambda job: job.moved_bytes == MIB << 20)
    return writer


def _by_io_node(site: Deployed) -> list[int]:
    return [node.bytes >> 20 for node in site.status().io_nodes]


@pytest.mark.parametrize("mode", ["observe", "enforce"])
def test_eight_writers_use_four_io_nodes_alike_with_idle_jobs_between(
    site: Deployed, mode: str
) -> None:
    """Three jobs without I/O begin after the first writer, and run on.

    A first I/O node by the number of the job would be the same for every fourth job.
    """
    site.up("--io-nodes", "4", "--policy", "fair-share", mode=mode)
    writers = [_writing(site, "writer-0")]
    with _idle(site, [f"idle-{k}" for k in range(3)]):
        writers += [_writing(site, f"writer-{k}") for k in range(1, WRITERS)]
        moved = _by_io_node(site)
        for writer in writers:
            assert writer.finish()["fail_opens"] == 0
    assert moved == [WRITERS * MIB // 4] * 4


@pytest.mark.parametrize("mode", ["observe", "enforce"])
def test_writers_one_after_the_other_use_all_io_nodes_alike(site: Deployed, mode: str) -> None:
    site.up("--io-nodes", "2", "--policy", "fair-share", mode=mode)
    for k in range(4):
        with _idle(site, [f"idle-{k}"]):
            _writing(site, f"writer-{k}").finish()
    assert _by_io_node(site) == [2 * MIB, 2 * MIB]


def test_jobs_stay_on_their_first_io_node_when_a_new_controller_takes_over(site: Deployed) -> None:
    """What they have written to a file may still be at that I/O node."""
    site.up("--io-nodes", "4", "--policy", "fair-share", mode="observe")
    writers = [_writing(site, f"writer-{k}") for k in range(3)]
    before = {writer.name: site.job(writer.name).io_nodes_used for writer in writers}
    os.kill(site.controller, signal.SIGKILL)
    site.penstock(
        *("up", "--root", str(site.root), "--io-nodes", "4", "--policy", "fair-share"),
        *("--emulate", "targets=1,rate=40MiB/s"),
    )
    for writer in reversed(writers):
        site.until(writer.name, lambda job: job.state == "running" and job.reconnected is not None)
        writer.do("write 1")
        record = site.until(writer.name, lambda job: job.moved_bytes == (MIB + 1) << 20)
        assert record.io_nodes_used == before[writer.name]
    assert sorted(before.values()) == [[0], [1], [2]]
    for writer in writers:
        writer.finish()
