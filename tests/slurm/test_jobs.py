"""Jobs that Slurm starts are managed from prolog to epilog, and leave nothing behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm.cluster import Cluster
from slurm.site import Site

MIB = 1 << 20


@pytest.fixture(scope="module")
def site(short: Path, run: Path) -> Iterator[Site]:
    with Site(short / "own", run) as site:
        yield site


def dd(path: Path | str, mib: int = 4) -> str:
    return f"dd if=/dev/zero of={path} bs=1M count={mib} status=none"


def test_a_job_is_forwarded_and_counted_under_its_number(slurm: Cluster, site: Site) -> None:
    job = slurm.sbatch(dd(site.root / "one"))
    assert site.await_end(slurm, job) == "COMPLETED"
    record = site.job(job)
    assert (record.state, record.status, record.user) == ("ended", 0, "root")
    assert (record.forwarded_bytes, record.direct_bytes) == (4 * MIB, 0)
    assert (site.root / "one").stat().st_size == 4 * MIB
    assert site.left() == []


def test_all_nodes_of_a_job_are_one_job(slurm: Cluster, site: Site) -> None:
    script = f"srun sh -c '{dd(f'{site.root}/$SLURM_PROCID')}'"
    job = slurm.sbatch(script, "-N4", "--ntasks-per-node=1")
    assert site.await_end(slurm, job) == "COMPLETED"
    assert [(site.root / str(k)).stat().st_size for k in range(4)] == [4 * MIB] * 4
    assert site.job(job).forwarded_bytes == 16 * MIB
    assert site.left() == []


def test_what_a_task_had_preloaded_stays(slurm: Cluster, site: Site) -> None:
    output = slurm.srun("sh", "-c", "echo $LD_PRELOAD", env_of={"LD_PRELOAD": "libm.so.6"}).stdout
    first, *others = output.strip().split(":")
    assert "libpenstock_client" in first
    assert others == ["libm.so.6"]


def test_a_step_inside_a_job_preloads_once(slurm: Cluster, site: Site) -> None:
    path = site.root / "preloads"
    site.await_end(slurm, slurm.sbatch(f"srun sh -c 'echo $LD_PRELOAD' >{path}"))
    assert path.read_text().count("libpenstock_client") == 1


def test_a_task_that_says_no_is_not_managed(slurm: Cluster, site: Site) -> None:
    output = slurm.srun("sh", "-c", "echo $LD_PRELOAD", env_of={"PENSTOCK_DISABLE": "1"}).stdout
    assert output.strip() == ""


def test_a_cancelled_job_leaves_nothing(slurm: Cluster, site: Site) -> None:
    begun = site.root / "begun"
    again = dd(site.root / "again", 1)
    job = slurm.sbatch(f"echo >{begun}; while {again}; do :; done", "-N2")
    slurm.wait(begun.exists, "sign of the job")
    slurm.wait(lambda: site.forwards(job), "forwarded bytes")
    slurm.command("scancel", job)
    assert site.await_end(slurm, job) == "CANCELLED"
    assert site.left() == []
    assert site.job(job).state == "ended"


@pytest.mark.parametrize(("does", "status"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_a_failed_job_has_its_status(slurm: Cluster, site: Site, does: str, status: int) -> None:
    job = slurm.sbatch(does)
    assert site.await_end(slurm, job) == "FAILED"
    assert site.job(job).status == status


def test_a_jobs_name_is_known_through_the_submit_plugin(slurm: Cluster, site: Site) -> None:
    job = slurm.sbatch("true", "--job-name=climate model")
    site.await_end(slurm, job)
    assert site.job(job).command == ["climate_model"]


def test_many_jobs_one_after_the_other_leave_nothing(slurm: Cluster, site: Site) -> None:
    jobs = [slurm.sbatch(dd(site.root / f"many-{k}", 1)) for k in range(8)]
    for job in jobs:
        assert site.await_end(slurm, job) == "COMPLETED"
        assert site.job(job).forwarded_bytes == MIB
    assert site.left() == []
