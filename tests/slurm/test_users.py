"""Every user's jobs, where I/O nodes serve all users."""

import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm.cluster import Cluster
from slurm.site import Site
from slurm.test_jobs import MIB, dd

pytestmark = pytest.mark.security


@pytest.fixture(scope="module")
def site(short: Path, run: Path) -> Iterator[Site]:
    """As the units have it: the controller and its I/O nodes are of a user without privileges."""
    with Site(short / "all", run, "--all-users", user="games") as site:
        yield site


def test_its_io_nodes_have_no_privilege(site: Site) -> None:
    for node in site.status().io_nodes:
        text = Path(f"/proc/{node.pid}/status").read_text()
        status = dict(line.split(":\t", 1) for line in text.splitlines())
        assert set(status["Uid"].split()) == {str(pwd.getpwnam("games").pw_uid)}
        assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0


def test_another_users_job_is_permitted_and_its_own(slurm: Cluster, site: Site) -> None:
    script = f"srun sh -c '{dd(f'{site.root}/user-$SLURM_PROCID')}'"
    job = slurm.sbatch(script, "-N4", "--ntasks-per-node=1", user="nobody")
    assert site.await_end(slurm, job) == "COMPLETED"
    record = site.job(job)
    assert (record.user, record.forwarded_bytes) == ("nobody", 16 * MIB)
    assert {(site.root / f"user-{k}").owner() for k in range(4)} == {"nobody"}
    assert site.left() == []


def test_roots_jobs_are_like_others(slurm: Cluster, site: Site) -> None:
    """An I/O node does nothing as root: root's processes do it."""
    job = slurm.sbatch(dd(site.root / "roots"))
    assert site.await_end(slurm, job) == "COMPLETED"
    record = site.job(job)
    assert (record.forwarded_bytes, record.direct_bytes) == (4 * MIB, 0)


def test_a_job_cannot_be_part_of_another_users(slurm: Cluster, site: Site) -> None:
    """Its socket is refused: what the intruder writes is not counted as the other's."""
    begun, go = site.root / "begun", site.root / "go"
    job = slurm.sbatch(f"echo >{begun}; until [ -e {go} ]; do sleep 0.1; done", user="nobody")
    slurm.wait(begun.exists, "sign of the job")
    written = site.job(job).forwarded_bytes
    socket = site.run.job(job) / "agent.sock"
    command = f"PENSTOCK_AGENT={socket} {dd(site.root / 'intruder', 1)}"
    slurm.srun("sh", "-c", command, user="daemon")
    go.touch()
    site.await_end(slurm, job)
    assert (site.root / "intruder").stat().st_size == MIB
    assert site.job(job).forwarded_bytes < written + MIB
    assert site.job(job).direct_bytes < MIB
