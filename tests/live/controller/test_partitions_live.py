"""Slurm partitions with I/O nodes of their own."""

import pytest
from live.controller.turn_deployment import Deployed


def test_jobs_of_a_partition_use_its_io_nodes_and_no_others_do(
    site: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.up("--io-nodes", "3", "--set", "live.partitions.gpu=[1]", "--policy", "fair-share")
    monkeypatch.setenv("SLURM_JOB_PARTITION", "gpu")
    inside = site.obedient("inside")
    monkeypatch.setenv("SLURM_JOB_PARTITION", "batch")
    outside = [site.obedient(f"outside-{k}") for k in range(2)]
    for job in (inside, *outside):
        job.do("write 4")
    assert site.job("inside").io_nodes == [1]
    assert {tuple(site.job(job.name).io_nodes) for job in outside} <= {(0,), (2,), (0, 2)}
    for job in (inside, *outside):
        assert job.finish()["fail_opens"] == 0
    moved = {io_node.number: io_node.bytes for io_node in site.status().io_nodes}
    assert moved[1] == 4 << 20
    assert moved[0] + moved[2] == 8 << 20
