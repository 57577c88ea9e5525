"""A campaign keeps what it finished, whoever ends it, and its results depend on its cells alone."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from campaign.failing_cells import dies, dies_once, fails

from penstock.campaign.cells import (
    RESULTS,
    Campaign,
    Cell,
    every,
    run,
)
from penstock.campaign.executors import local
from penstock.campaign.executors.local import LocalPool, local_workers
from penstock.campaign.executors.pool import WorkerDiedError
from penstock.campaign.sizes import Size
from penstock.errors import InputError
from penstock.report.tables import rows_csv
from penstock.studies import io_sets

PATIENCE = 30.0

# Cells from number `free` on wait for the file `go`, so that a test decides when they end.
SCRIPT = """
import os, signal, sys, time
from functools import partial
from pathlib import Path
from penstock.campaign.cells import Campaign, every, run

def work(cell, *, directory, free):
    (directory / f"worker-{os.getpid()}").touch()
    while cell.workload >= free and not (directory / "go").exists():
        time.sleep(0.01)
    return [{"scenario": cell.scenario, "x": cell.x, "workload": cell.workload, "policy": policy,
             "value": (cell.workload + 0.1) / 3} for policy in ("a", "b")]

if __name__ == "__main__":
    directory, free, cells = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    campaign = Campaign(study="test", version=1, size="fast", seed=0,
                        cells=list(every("one", (0.5,), cells)),
                        work=partial(work, directory=directory, free=free))
    from penstock.report.tables import rows_csv
    results = run(campaign, directory, cores=2)
    (directory / "results.csv").write_text(rows_csv(results.rows))
"""


@pytest.fixture
def start(tmp_path: Path) -> Any:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    running = []

    def launch(directory: Path, free: int, cells: int = 12) -> subprocess.Popen[str]:
        directory.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, str(script), str(directory), str(free), str(cells)],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        running.append(process)
        return process

    yield launch
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def finished(directory: Path) -> int:
    file = directory / RESULTS
    return file.read_bytes().count(b"\n") - 1 if file.exists() else 0


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_killed_campaign_resumes_to_the_same_results(start: Any, tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = start(killed, 3)
    until(lambda: finished(killed) == 3)
    until(lambda: len(list(killed.glob("worker-*"))) == 2)
    workers = [int(file.name.partition("-")[2]) for file in killed.glob("worker-*")]
    process.kill()
    process.wait()
    until(lambda: not any(alive(worker) for worker in workers))
    before = (killed / RESULTS).read_bytes()
    (killed / RESULTS).write_bytes(before + b'{"cell":["one",0.5,7],"sec')

    (killed / "go").touch()
    assert start(killed, 3).wait(PATIENCE) == 0
    (whole / "go").parent.mkdir()
    (whole / "go").touch()
    assert start(whole, 3).wait(PATIENCE) == 0
    assert (killed / RESULTS).read_bytes().startswith(before)
    assert (killed / "results.csv").read_bytes() == (whole / "results.csv").read_bytes()
    assert (whole / "results.csv").read_text().count("\n") == 1 + 12 * 2


def test_an_interrupt_keeps_the_cells_that_run(start: Any, tmp_path: Path) -> None:
    directory = tmp_path / "interrupted"
    process = start(directory, 3, cells=5000)
    until(lambda: finished(directory) == 3)
    os.killpg(process.pid, signal.SIGINT)
    # Both workers are in the middle of a cell; they must outlive the interrupt to end it.
    (directory / "go").touch()
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert complaint.count("KeyboardInterrupt") == 1, "only the parent hears of it"
    assert 5 <= finished(directory) < 5000


class Inline(Executor):
    """Runs everything at once, in this process, last submitted first kept."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except InputError as error:
            future.set_exception(error)
        return future


def small_study(seed: int = 0, size: Size = "fast") -> Campaign:
    cells = [*every("figure-4", (0, 15), 1), *every("figure-6-n-15", (5, 0), 3)]
    return Campaign(
        study="io-sets",
        version=1,
        size=size,
        seed=seed,
        cells=cells,
        work=partial(io_sets.run_cell, seed=seed),
    )


def test_results_do_not_depend_on_cores_or_order(tmp_path: Path) -> None:
    texts = []
    backwards = small_study()
    backwards = Campaign(
        study=backwards.study,
        version=backwards.version,
        size=backwards.size,
        seed=backwards.seed,
        cells=backwards.cells[::-1],
        work=backwards.work,
    )
    for name, campaign in (("one", small_study()), ("two", small_study()), ("back", backwards)):
        (tmp_path / name).mkdir()
        if name == "two":
            with local_workers(2) as executor:
                results = run(campaign, tmp_path / name, executor=executor)
        else:
            results = run(campaign, tmp_path / name, executor=Inline())
        texts.append(rows_csv(results.rows))
    assert texts[0] == texts[1] == texts[2]


WAIT = 0.3


def waits(cell: Cell) -> list[dict[str, Any]]:
    time.sleep(WAIT)
    return [{"scenario": cell.scenario, "x": cell.x}]


@pytest.mark.parametrize("alone", [True, False])
def test_only_cells_that_run_alone_are_timed_by_the_clock(tmp_path: Path, alone: bool) -> None:
    """A cell that waits for a core takes no longer to compute; one that measures time does."""
    campaign = Campaign(
        study="test",
        version=1,
        size="fast",
        seed=0,
        cells=list(every("one", (0,), 1)),
        work=waits,
        alone=alone,
    )
    (seconds,) = run(campaign, tmp_path, executor=Inline()).seconds.values()
    assert (seconds >= WAIT) is alone


def test_progress_counts_what_was_there_before(tmp_path: Path) -> None:
    steps: list[int] = []
    run(small_study(), tmp_path, executor=Inline(), advance=steps.append)
    assert sum(steps) == len(small_study().cells)
    steps.clear()
    run(small_study(), tmp_path, executor=Inline(), advance=steps.append)
    assert steps == [len(small_study().cells)]


@pytest.mark.parametrize(
    ("other", "named"),
    [(small_study(seed=1), "seed 0, this run seed 1"), (small_study(size="full"), "size fast")],
)
def test_results_of_another_run_are_refused_and_left_alone(
    tmp_path: Path, other: Campaign, named: str
) -> None:
    run(small_study(), tmp_path, executor=Inline())
    before = (tmp_path / RESULTS).read_bytes()
    with pytest.raises(InputError, match=named):
        run(other, tmp_path, executor=Inline())
    assert (tmp_path / RESULTS).read_bytes() == before


def test_a_failing_cell_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    campaign = Campaign(
        study="test",
        version=1,
        size="fast",
        seed=0,
        cells=list(every("one", (0.5,), 4)),
        work=partial(fails, at=3),
    )
    with (
        local_workers(1) as executor,
        pytest.raises(InputError, match=r"one at 0\.5: no such luck"),
    ):
        run(campaign, tmp_path, executor=executor)
    assert finished(tmp_path) == 3


def test_results_that_came_with_a_failure_are_kept(tmp_path: Path) -> None:
    """All cells are done before the first look: whatever the order, the results are kept."""
    campaign = Campaign(
        study="test",
        version=1,
        size="fast",
        seed=0,
        cells=list(every("one", (0.5,), 40)),
        work=partial(fails, at=3),
    )
    with pytest.raises(InputError, match="no such luck"):
        run(campaign, tmp_path, executor=Inline())
    assert finished(tmp_path) == 39


def deadly(work: Callable[..., Any]) -> Campaign:
    return Campaign(
        study="test",
        version=1,
        size="fast",
        seed=0,
        cells=list(every("one", (0.5,), 3)),
        work=work,
    )


def test_cells_of_a_worker_that_dies_are_run_again(tmp_path: Path) -> None:
    lines: list[str] = []
    work = deadly(partial(dies_once, mark=tmp_path / "mark"))
    with LocalPool(2, lines.append) as pool:
        results = run(work, tmp_path, executor=pool.executor())
    assert (tmp_path / "mark").exists()
    assert len(results.rows) == 3
    assert lines == ["a worker process died; its cells are run again, 1 at a time"]


def test_a_cell_that_always_kills_its_worker_is_reported(tmp_path: Path) -> None:
    with pytest.raises(WorkerDiedError, match="finished cells are kept"):
        run(deadly(dies), tmp_path, cores=1)
    assert finished(tmp_path) == 0


def test_a_machine_without_semaphores_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's error names no file."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(local, "ProcessPoolExecutor", refuse)
    refused = pytest.raises(InputError, match="semaphores in /dev/shm: Permission denied")
    with refused, local_workers(1):
        pass
