"""Jobs of Slurm belong to the application that their comment, environment or name says."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm.cluster import Cluster
from slurm.site import PENSTOCK, Site
from slurm.test_jobs import MIB, dd


@pytest.fixture(scope="module")
def site(short: Path, run: Path) -> Iterator[Site]:
    with Site(short / "apps", run) as site:
        yield site


def announced(slurm: Cluster, site: Site, job: str) -> dict[str, float]:
    """Return the hints of a job, as policies see them."""
    hints: list[dict[str, float]] = []

    def recorded() -> bool:
        for path in site.state.records.glob("*"):
            for line in path.read_text().splitlines():
                event = json.loads(line)
                if event.get("event") == "JobStarted" and job in event["job"]["id"]:
                    hints.append(event["job"].get("hints", {}))
        return bool(hints)

    slurm.wait(recorded, f"record of job {job}")
    return hints[0]


def test_a_comment_names_the_application_and_describes_its_io(slurm: Cluster, site: Site) -> None:
    comment = "grant 17 penstock: application=ocean,period=60s,phases=20,io-nodes=1"
    job = slurm.sbatch(dd(site.root / "ocean"), f"--comment={comment}", "--job-name=member-3")
    assert site.await_end(slurm, job) == "COMPLETED"
    record = site.job(job)
    assert (record.executable, record.requested_io_nodes) == ("ocean", 1)
    assert len(record.io_nodes_used) == 1
    assert announced(slurm, site, f"slurm-{job}") == {"period": 60, "phases": 20}


def test_the_environment_of_a_submission_does_the_same(slurm: Cluster, site: Site) -> None:
    variables = {"PENSTOCK_APPLICATION": "ocean, 2", "PENSTOCK_HINT": "period=30 s,phases=4"}
    job = slurm.sbatch("true", "--comment=my own", env_of=variables)
    assert site.await_end(slurm, job) == "COMPLETED"
    assert site.job(job).executable == "ocean__2"
    assert announced(slurm, site, f"slurm-{job}") == {"period": 30, "phases": 4}
    assert "Comment=my own penstock: " in slurm.scontrol("show", "job", job)


@pytest.mark.security
@pytest.mark.parametrize("own", ["", "x" * 1000])
def test_no_environment_makes_slurm_refuse_a_job(slurm: Cluster, site: Site, own: str) -> None:
    """A comment that would become too long for Slurm stays as it is."""
    variables = {"PENSTOCK_APPLICATION": "a" * 10_000, "PENSTOCK_HINT": "b" * 10_000}
    job = slurm.sbatch("true", f"--comment={own}", env_of=variables)
    assert site.await_end(slurm, job) == "COMPLETED"
    assert site.job(job).executable == ""


def test_a_job_that_moves_by_itself_is_named_too(slurm: Cluster, site: Site) -> None:
    job = slurm.sbatch("true", "--comment=penstock=auto", "--job-name=weather")
    site.await_end(slurm, job)
    assert site.job(job).executable == "weather"


def test_a_name_that_says_nothing_is_no_application(slurm: Cluster, site: Site) -> None:
    job = slurm.sbatch("true")  # Slurm calls it sbatch
    site.await_end(slurm, job)
    assert site.job(job).executable == ""


@pytest.mark.security
def test_hostile_hints_are_logged_and_the_job_is_managed_without(
    slurm: Cluster, site: Site
) -> None:
    wrong = "volume=-1,period=nan,phases=1e300,io-nodes=99"
    comment = f"penstock: application={'x' * 700},{wrong}"
    job = slurm.sbatch(dd(site.root / "hostile"), f"--comment={comment}")
    assert site.await_end(slurm, job) == "COMPLETED"
    record = site.job(job)
    assert (record.forwarded_bytes, record.requested_io_nodes) == (4 * MIB, None)
    assert len(record.executable) == 200
    assert announced(slurm, site, f"slurm-{job}") == {}
    for part in wrong.split(",")[:3]:
        assert f"job {job} of root: hint '{part}': " in site.log()
    assert f"job {job}: 99 I/O nodes are requested; there are 2; it goes on without" in site.log()


def test_penstock_run_in_a_job_has_the_name_of_the_job(slurm: Cluster, site: Site) -> None:
    run = f"{' '.join(PENSTOCK)} run --require --state {site.state.folder} --io-nodes 1 --"
    for options, application in (("--job-name=weather",), "weather"), ((), "dd"):
        job = slurm.sbatch(f"{run} {dd(site.root / 'inner')}", *options)
        assert site.await_end(slurm, job) == "COMPLETED"
        assert site.latest().executable == application
