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
    assert slurm.await_end(job) == "COMPLETED"
    found = site.job(job)
    assert (found["state"], found["status"], found["user"]) == ("ended", 0, "root")
    assert (found["forwarded_bytes"], found["direct_bytes"]) == (4 * MIB, 0)
    assert (site.root / "one").stat().st_size == 4 * MIB
    assert site.left() == []


def test_all_nodes_of_a_job_are_one_job(slurm: Cluster, site: Site) -> None:
    script = f"srun sh -c '{dd(f'{site.root}/$SLURM_PROCID')}'"
    job = slurm.sbatch(script, "-N4", "--ntasks-per-node=1")
    assert slurm.await_end(job) == "COMPLETED"
    assert [(site.root / str(k)).stat().st_size for k in range(4)] == [4 * MIB] * 4
    assert site.job(job)["forwarded_bytes"] == 16 * MIB
    assert site.left() == []
