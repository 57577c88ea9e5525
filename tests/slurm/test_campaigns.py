"""Cells on workers that a real Slurm starts: the same results, and an empty queue afterwards."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from campaign import failing_cells
from limits import HANG
from slurm.cluster import Cluster

from penstock.campaign import executors
from penstock.campaign.cells import RESULTS, Campaign, every, run
from penstock.campaign.executors import ExecutorError, Limits
from penstock.cli import main
from penstock.config.campaign import CampaignSection

TESTS = Path(__file__).parents[1]
PENSTOCK = (sys.executable, "-m", "penstock.cli")
STUDY = ("reproduce", "sharing-policies", "--quick")
PATIENCE = HANG


@pytest.fixture
def settings(
    slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """What [campaign] says; whatever a test does, nothing may be left in the queue."""
    slurm.await_idle()
    for name, value in slurm.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    yield {
        "on": "slurm",
        "jobs": 1,
        "memory": "400 MiB",
        "interface": "lo",
        "directory": str(tmp_path / "campaigns"),
    }
    assert names(slurm) == []


def words(settings: dict[str, Any]) -> list[str]:
    return [
        word for key, value in settings.items() for word in ("--set", f"campaign.{key}={value}")
    ]


def job_ids(slurm: Cluster) -> set[str]:
    """Return the ids of all jobs that Slurm has."""
    return set(slurm.command("squeue", "--noheader", "--format=%i").stdout.split())


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what happens soon; fail once it cannot happen any more."""
    until = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def names(slurm: Cluster) -> list[str]:
    """Return the names of all jobs that Slurm has, but for those that are just ending."""
    queue = slurm.command("squeue", "-h", "-o", "%j %T").stdout
    return [line.split()[0] for line in queue.splitlines() if not line.endswith("COMPLETING")]


def campaign(work: Any) -> Campaign:
    cells = list(every("one", (0.5,), 4))
    return Campaign(study="test", version=1, size="fast", seed=0, cells=cells, work=work)


def kept(directory: Path) -> list[Any]:
    _, *lines = (directory / RESULTS).read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    return sorted((entry["cell"], entry["rows"]) for entry in entries)


def test_the_results_are_those_of_local_cores(
    settings: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["generate", "io-sets", "--jobs", "6", "--horizon", "200", "--out", "a.json"]) == 0
    capsys.readouterr()
    settings |= {"jobs": 2, "partition": "old", "sbatch": ["--nice=5"]}
    outputs = {}
    for name, more in (("here", []), ("there", words(settings))):
        assert main(["compare", "a.json", "--json", "--out", name, *more]) == 0
        outputs[name] = capsys.readouterr().out
    assert outputs["here"] == outputs["there"]
    for name in ("results.csv", "comparison.json"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    assert kept(tmp_path / "here") == kept(tmp_path / "there")
    assert list((tmp_path / "campaigns").iterdir()) == [], "neither keys nor logs are left"


def test_jobs_that_end_too_early_are_submitted_again(
    slurm: Cluster, settings: dict[str, Any], tmp_path: Path
) -> None:
    """As at a time limit: somebody cancels the job while its worker is in the middle of a cell."""
    lines: list[str] = []

    def harm(steps: int) -> None:
        if steps and not (tmp_path / "go").exists():
            jobs = job_ids(slurm)
            slurm.command("scancel", *jobs)
            # Only then may cells go on: the worker must not finish them before it is killed.
            wait_until(lambda: not jobs & job_ids(slurm))
            (tmp_path / "go").touch()

    work = partial(failing_cells.waits, directory=tmp_path, free=1)
    with executors.open_pool(CampaignSection(**settings), tell=lines.append) as workers:
        results = run(campaign(work), tmp_path, executor=workers.executor(), advance=harm)
    assert len(results.rows) == 4
    assert any("1 of 1 Slurm jobs ended and are submitted again" in line for line in lines)


def test_an_interrupt_cancels_the_jobs(
    slurm: Cluster, settings: dict[str, Any], tmp_path: Path
) -> None:
    """Those that wait as well: here they are held, so that no worker ever starts."""
    settings |= {"sbatch": ["--hold"]}
    process = subprocess.Popen(
        [*PENSTOCK, *STUDY, "--out", str(tmp_path / "out"), *words(settings)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        slurm.wait(lambda: names(slurm) != [] or process.poll() is not None, "job in the queue")
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 130, stderr
    assert "0 of" in stderr
    assert "the same command goes on from there" in stderr
    assert "Traceback" not in stderr
    assert names(slurm) == []


def test_a_refusal_is_reported_in_slurms_words(
    settings: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ("--out", str(tmp_path / "out"))
    assert main([*STUDY, *out, *words(settings | {"partition": "nowhere"})]) == 1
    assert "Slurm took no job: sbatch: error: invalid partition" in capsys.readouterr().err
    assert main([*STUDY, *out, *words(settings | {"interface": "none7"})]) == 2
    assert "none7" in capsys.readouterr().err


@pytest.fixture
def unreachable(tmp_path: Path) -> Path:
    """A configuration whose controller nobody runs."""
    file = tmp_path / "unreachable" / "slurm.conf"
    file.parent.mkdir()
    file.write_text(
        "ClusterName=nowhere\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=1\n"
        "AuthType=auth/none\nCredType=cred/none\nMessageTimeout=2\n"
        "NodeName=n\nPartitionName=p Nodes=n\n"
    )
    return file


def test_where_slurm_does_not_answer_no_job_is_looked_for(
    settings: dict[str, Any], unreachable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(unreachable))
    lines: list[str] = []
    (tmp_path / "out").mkdir()
    with (
        executors.open_pool(CampaignSection(**settings), tell=lines.append) as workers,
        pytest.raises(ExecutorError, match=r"Slurm took no job: .*Unable to contact"),
    ):
        run(campaign(failing_cells.where), tmp_path / "out", executor=workers.executor())
    assert lines == []
    assert list((tmp_path / "campaigns").iterdir()) == [], "there are neither keys nor logs"


def test_jobs_that_slurm_says_nothing_of_are_named(
    slurm: Cluster,
    settings: dict[str, Any],
    unreachable: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The controller goes away while a job waits."""
    limits = Limits(quiet=0.0, command=5.0)
    lines: list[str] = []
    reachable = os.environ["SLURM_CONF"]

    def tell(line: str) -> None:
        lines.append(line)
        monkeypatch.setenv("SLURM_CONF", str(unreachable))

    settings |= {"sbatch": ["--hold"], "wait": "2 s"}
    (tmp_path / "out").mkdir()
    with (
        pytest.raises(ExecutorError, match="Slurm has had no worker for 2 s"),
        executors.open_pool(CampaignSection(**settings), tell=tell, limits=limits) as workers,
    ):
        run(campaign(failing_cells.where), tmp_path / "out", executor=workers.executor())
    monkeypatch.setenv("SLURM_CONF", reachable)
    (left,) = names(slurm)
    advice = "Slurm does not say whether jobs of this run are left; see to them: scancel --name="
    assert lines[-1] == f"{advice}{left}"
    assert list((tmp_path / "campaigns").rglob("*.pem")) == []
    slurm.command("scancel", f"--name={left}")


def test_workers_that_never_come_are_not_waited_for(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    """The jobs end at once: their logs say why, and stay."""
    limits = Limits(resubmissions=0, poll_idle=1.0)
    settings |= {"setup": ["echo no such module >&2; exit 1"]}
    (tmp_path / "out").mkdir()
    with (
        executors.open_pool(CampaignSection(**settings), limits=limits) as workers,
        pytest.raises(ExecutorError, match=r"jobs end before any work is done.*no such module"),
    ):
        run(campaign(failing_cells.where), tmp_path / "out", executor=workers.executor())
    assert list((tmp_path / "campaigns").glob("*/*.err"))
    assert list((tmp_path / "campaigns").glob("*/*.pem")) == []
