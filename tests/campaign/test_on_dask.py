"""Cells on a real Dask cluster: the same results, and clear ends when something is not there."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import distributed
import pytest
from campaign import failing_cells
from campaign.dask_cluster import TESTS, DaskCluster, wait

from penstock.campaign import executors
from penstock.campaign.cells import RESULTS, Campaign, Results, every, run
from penstock.campaign.executors import ExecutorError, Limits, WorkerDiedError
from penstock.campaign.executors.worker_check import UnfitWorkerError
from penstock.cli import main
from penstock.config.campaign import CampaignSection
from penstock.errors import InputError
from penstock.report.tables import rows_csv
from penstock.studies import io_sets

PATIENCE = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """Two workers, of one thread and of two: no test may harm them."""
    with DaskCluster(tmp_path_factory.mktemp("dask")) as started:
        started.worker()
        started.worker(threads=2)
        yield started


@pytest.fixture
def lonely(tmp_path: Path) -> Iterator[DaskCluster]:
    """A scheduler to be harmed, without workers."""
    (tmp_path / "lonely").mkdir()
    settings = {"scheduler__allowed_failures": 1}
    with DaskCluster(tmp_path / "lonely", **settings) as started:
        yield started


def campaign(work: Callable[..., Any], count: int = 6) -> Campaign:
    return Campaign(
        study="test",
        version=1,
        size="fast",
        seed=0,
        cells=list(every("one", (0.5,), count)),
        work=work,
    )


def small_study(*, backwards: bool = False) -> Campaign:
    order = -1 if backwards else 1
    cells = [*every("figure-4", (0, 15), 1), *every("figure-6-n-15", (5, 0), 2)][::order]
    return Campaign(
        study="io-sets",
        version=1,
        size="fast",
        seed=0,
        cells=cells,
        work=partial(io_sets.run_cell, seed=0),
    )


def run_on(
    where: str,
    what: Campaign,
    directory: Path,
    *,
    wait: str = "60 s",
    limits: Limits | None = None,
) -> Results:
    directory.mkdir(exist_ok=True)
    section = CampaignSection(on=where, wait=wait)
    with executors.open_pool(section, limits=limits) as workers:
        return run(what, directory, executor=workers.executor())


def kept(directory: Path) -> list[Any]:
    """Return the finished cells without their times, in an order of their own."""
    _, *lines = (directory / RESULTS).read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    return sorted((entry["cell"], entry["rows"]) for entry in entries)


def test_results_do_not_depend_on_who_works(cluster: DaskCluster, tmp_path: Path) -> None:
    texts = {}
    for name, where, what in (
        ("local", "local", small_study()),
        ("dask", cluster.address, small_study()),
        ("file", str(cluster.file), small_study(backwards=True)),
    ):
        texts[name] = rows_csv(run_on(where, what, tmp_path / name).rows)
    assert texts["local"] == texts["dask"] == texts["file"]
    assert kept(tmp_path / "local") == kept(tmp_path / "dask") == kept(tmp_path / "file")


def test_the_work_is_done_by_the_workers(cluster: DaskCluster, tmp_path: Path) -> None:
    results = run_on(cluster.address, campaign(failing_cells.where, 12), tmp_path)
    assert {row["process"] for row in results.rows} <= {w.pid for w in cluster.workers}


def test_a_campaign_goes_on_wherever_it_ran_before(cluster: DaskCluster, tmp_path: Path) -> None:
    """The first half stops at an error, which arrives as it was raised; all finished is kept."""
    here, there = "local", cluster.address
    whole = run_on(here, campaign(partial(failing_cells.fails, at=-1)), tmp_path / "whole").rows
    for name, first, second in (("away", here, there), ("home", there, here)):
        directory = tmp_path / name
        with pytest.raises(InputError, match=r"^one at 0\.5: no such luck$"):
            run_on(first, campaign(partial(failing_cells.fails, at=3)), directory)
        before = (directory / RESULTS).read_bytes()
        assert before.count(b"\n") <= 6
        results = run_on(second, campaign(partial(failing_cells.fails, at=-1)), directory)
        assert (directory / RESULTS).read_bytes().startswith(before)
        assert results.rows == whole


def test_reproduce_writes_the_same_files(
    cluster: DaskCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = []
    for on in ("local", str(cluster.file)):
        out = tmp_path / Path(on).stem
        words = ["reproduce", "sharing-policies", "--quick", "--on", on, "--out", str(out)]
        assert main([*words, "--json"]) == 0, capsys.readouterr().err
        claims.append(capsys.readouterr().out)
    assert claims[0] == claims[1]
    local, dask = tmp_path / "local", tmp_path / "scheduler"
    for name in ("results.csv", "claims.csv", "claims.md"):
        assert (local / name).read_bytes() == (dask / name).read_bytes(), name
    assert kept(local) == kept(dask)


def test_compare_gives_the_same_with_a_policy_of_ones_own(
    cluster: DaskCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The file is named from here; workers are elsewhere, and read it by its full path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from penstock.policies.base import ByArrival\n"
        "class Mine(ByArrival):\n"
        "    def group(self, job):\n"
        "        return 'all'\n"
    )
    for seed, name in (("1", "a.json"), ("2", "b.npz")):
        words = ["--jobs", "6", "--horizon", "200", "--seed", seed, "--out", name]
        assert main(["generate", "io-sets", *words]) == 0
    capsys.readouterr()
    outputs = {}
    for name, on in (("here", "local"), ("there", cluster.address)):
        words = ["a.json", "b.npz", "--policies", "./mine.py:Mine,exclusive-fcfs,set-10"]
        assert main(["compare", *words, "--json", "--on", on, "--out", name]) == 0
        outputs[name] = capsys.readouterr().out
    assert outputs["here"] == outputs["there"]
    policies = json.loads(outputs["there"])["policies"]
    assert policies["./mine.py:Mine"] == policies["exclusive-fcfs"]
    for name in ("results.csv", "comparison.json"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    assert kept(tmp_path / "here") == kept(tmp_path / "there")


def test_an_interrupt_takes_back_what_waits_and_leaves_the_cluster(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    """Three threads run cells that wait, thousands wait behind them."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from functools import partial\n"
        "from pathlib import Path\n"
        f"sys.path.insert(0, {str(TESTS)!r})\n"
        "from campaign import failing_cells\n"
        "from campaign.test_on_dask import campaign, run_on\n"
        "directory = Path(sys.argv[2])\n"
        "work = partial(failing_cells.waits, directory=directory, free=3)\n"
        "run_on(sys.argv[1], campaign(work, 5000), directory)\n"
    )
    out = tmp_path / "out"
    out.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(script), cluster.address, str(out)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        # The three free ones are done, and the next three hold all threads.
        wait(
            lambda: len(list(out.glob("began-*"))) >= 6 or process.poll() is not None,
            "busy workers",
            cluster.logs,
        )
        assert process.poll() is None, process.communicate()
        os.killpg(process.pid, signal.SIGINT)
        # What runs is waited for, and kept.
        (out / "go").touch()
        _, stderr = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert "KeyboardInterrupt" in stderr
    assert 6 <= len(kept(out)) < 100
    began = len(list(out.glob("began-*")))
    results = run_on(cluster.address, campaign(failing_cells.where), tmp_path / "next")
    assert len(results.rows) == 6, "the cluster goes on"
    assert len(list(out.glob("began-*"))) == began, "nothing of the first is left"


def test_a_cell_whose_worker_dies_is_run_again(lonely: DaskCluster, tmp_path: Path) -> None:
    lonely.worker(nanny=True)
    work = partial(failing_cells.dies_once, mark=tmp_path / "mark")
    results = run_on(lonely.address, campaign(work), tmp_path)
    assert (tmp_path / "mark").exists()
    assert len(results.rows) == 6
    # One that always kills its worker is given up, and what the others gave is kept.
    with pytest.raises(WorkerDiedError, match=r"2 workers died of one piece.*finished cells are"):
        run_on(lonely.address, campaign(failing_cells.dies, 1), tmp_path / "deadly")
    assert kept(tmp_path / "deadly") == []


def test_a_scheduler_that_goes_away_ends_the_run_and_not_what_is_kept(
    lonely: DaskCluster, tmp_path: Path
) -> None:
    lonely.worker()
    out = tmp_path / "out"
    out.mkdir()

    def harm(steps: int) -> None:
        if steps and lonely.scheduler is not None:
            lonely.scheduler.kill()

    work = partial(failing_cells.waits, directory=out, free=1)
    with (
        executors.open_pool(
            CampaignSection(on=lonely.address), limits=Limits(connect=2.0)
        ) as workers,
        pytest.raises(ExecutorError, match=r"went away; finished cells are kept"),
    ):
        run(campaign(work), out, executor=workers.executor(), advance=harm)
    assert len(kept(out)) == 1
    assert len(run_on("local", campaign(partial(failing_cells.fails, at=-1)), out).rows) == 6


def test_a_scheduler_that_is_started_again_gets_the_work_again(
    lonely: DaskCluster, tmp_path: Path
) -> None:
    """It has forgotten all pieces; those that were submitted are submitted once more."""
    lonely.worker()

    def harm(steps: int) -> None:
        if steps and not (tmp_path / "go").exists():
            lonely.restart_scheduler()
            (tmp_path / "go").touch()
            lonely.worker()

    work = partial(failing_cells.waits, directory=tmp_path, free=1)
    section = CampaignSection(on=lonely.address, wait="60 s")
    with executors.open_pool(section, limits=Limits(connect=PATIENCE)) as workers:
        results = run(campaign(work), tmp_path, executor=workers.executor(), advance=harm)
    assert len(results.rows) == 6


def test_a_scheduler_that_hangs_is_not_waited_for(lonely: DaskCluster, tmp_path: Path) -> None:
    limits = Limits(answer=2.0, close=1.0)
    lonely.worker()
    assert lonely.scheduler is not None
    pid = lonely.scheduler.pid
    work = partial(failing_cells.waits, directory=tmp_path, free=1)

    def harm(steps: int) -> None:
        if steps:
            os.kill(pid, signal.SIGSTOP)

    try:
        with (
            executors.open_pool(CampaignSection(on=lonely.address), limits=limits) as workers,
            pytest.raises(ExecutorError, match="has not answered for 2 s"),
        ):
            run(campaign(work), tmp_path, executor=workers.executor(), advance=harm)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert len(kept(tmp_path)) == 1


STUCK = """
import time
from penstock.campaign.executors import worker_check
def stuck():
    time.sleep(600)
worker_check.environment = stuck
"""


@pytest.mark.parametrize("kind", ["stopped", "stuck"])
def test_a_worker_that_does_not_answer_is_left_out(
    kind: str, lonely: DaskCluster, tmp_path: Path
) -> None:
    """It is listed, and takes connections, but is stopped, or sits in a call for minutes."""
    limits = Limits(worker_answer=1.0)
    (tmp_path / "stuck.py").write_text(STUCK)
    log = lonely.folder / "worker-0.log"
    silent = lonely.worker(*(("--preload", str(tmp_path / "stuck.py")) * (kind == "stuck")))
    wait(lambda: "Starting established connection" in log.read_text(), "worker", lonely.logs)
    if kind == "stopped":
        os.kill(silent.pid, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(ExecutorError, match=r"no worker for 1 s \(worker \S+ does not answer\)"):
        run_on(
            lonely.address,
            campaign(failing_cells.where),
            tmp_path / "alone",
            wait="1 s",
            limits=limits,
        )
    assert time.monotonic() - began < PATIENCE

    fit = lonely.worker(threads=2)
    lines: list[str] = []
    (tmp_path / "beside").mkdir()
    section = CampaignSection(on=lonely.address, wait="60 s")
    with executors.open_pool(section, tell=lines.append, limits=limits) as workers:
        results = run(
            campaign(failing_cells.where, 40), tmp_path / "beside", executor=workers.executor()
        )
    assert {row["process"] for row in results.rows} == {fit.pid}
    assert len([line for line in lines if "does not answer; the others" in line]) == 1
    if kind == "stopped":
        # Once it answers, it works again.
        os.kill(silent.pid, signal.SIGCONT)
        fit.kill()
        results = run_on(lonely.address, campaign(failing_cells.where), tmp_path / "again")
        assert {row["process"] for row in results.rows} == {silent.pid}


def test_pieces_for_workers_that_are_gone_are_handed_to_others(
    lonely: DaskCluster, tmp_path: Path
) -> None:
    """While a worker is silent, only the fit ones get pieces; here the only one of them dies."""
    silent, fit = lonely.worker(), lonely.worker()
    log = lonely.folder / "worker-0.log"
    wait(lambda: "Starting established connection" in log.read_text(), "worker", lonely.logs)
    os.kill(silent.pid, signal.SIGSTOP)

    def harm() -> None:
        wait(lambda: list(tmp_path.glob("began-*")) != [], "busy worker", lonely.logs)
        fit.kill()
        fit.wait()
        (tmp_path / "go").touch()
        lonely.worker()

    work = partial(failing_cells.waits, directory=tmp_path, free=0)
    with (
        ThreadPoolExecutor(1) as beside,
        executors.open_pool(
            CampaignSection(on=lonely.address, wait="60 s"), limits=Limits(worker_answer=1.0)
        ) as workers,
    ):
        harmed = beside.submit(harm)
        results = run(campaign(work), tmp_path, executor=workers.executor())
        harmed.result()
    assert len(results.rows) == 6


def test_missing_workers_and_schedulers_are_reported(
    lonely: DaskCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(executors, "LIMITS", Limits(connect=1.0))
    began = time.monotonic()
    words = ["reproduce", "sharing-policies", "--quick", "--out", str(tmp_path / "x")]
    assert main([*words, "--on", lonely.address, "--set", "campaign.wait=1 s"]) == 1
    assert "has had no worker for 1 s; start some, or" in capsys.readouterr().err
    assert main([*words, "--on", "tcp://127.0.0.1:1"]) == 1
    assert "at tcp://127.0.0.1:1 did not answer within 1 s" in capsys.readouterr().err
    assert time.monotonic() - began < PATIENCE


def without_penstock(folder: Path) -> tuple[str, ...]:
    """Return a Python that has all that this one has but Penstock."""
    packages = Path(distributed.__file__).parents[1]
    folder.mkdir()
    for entry in packages.iterdir():
        if "penstock" not in entry.name.lower() and entry.suffix != ".pth":
            (folder / entry.name).symlink_to(entry)
    return ("env", f"PYTHONPATH={folder}", sys.executable, "-S")


def test_workers_that_differ_are_refused_before_they_work(
    lonely: DaskCluster, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "penstock-0.0.7.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: penstock\nVersion: 0.0.7\n")
    path = f"{other.parent}{os.pathsep}{TESTS}"
    kinds: list[tuple[str, dict[str, Any]]] = [
        (r"has Penstock 0\.0\.7 instead of", {"environment": {"PYTHONPATH": path}}),
        (r"has Penstock none instead of", {"python": without_penstock(tmp_path / "packages")}),
        (r"has PENSTOCK_DATA /x instead of none", {"environment": {"PENSTOCK_DATA": "/x"}}),
    ]
    for message, options in kinds:
        worker = lonely.worker(**options)
        work = partial(failing_cells.waits, directory=tmp_path, free=99)
        with pytest.raises(UnfitWorkerError, match=message):
            run_on(lonely.address, campaign(work), tmp_path / "out")
        worker.terminate()
        worker.wait(PATIENCE)
    assert list(tmp_path.glob("began-*")) == []


def test_studies_that_measure_time_need_nobody_else(tmp_path: Path) -> None:
    measured = Campaign(
        study="test",
        version=1,
        size="fast",
        seed=0,
        cells=list(every("one", (0.5,), 2)),
        work=failing_cells.where,
        alone=True,
    )
    results = run_on("tcp://127.0.0.1:1", measured, tmp_path)
    assert {row["process"] for row in results.rows} == {os.getpid()}
