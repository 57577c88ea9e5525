"""Campaigns: many independent, deterministic cells, run on all cores, kept as they finish.

A cell is one workload of one point of one scenario; it gives a row for every policy. What a cell
gives depends on the cell and the campaign's seed alone, so the results do not depend on the number
of cores, on the order, or on how often the campaign was interrupted and resumed.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

from penstock import __version__
from penstock.errors import InputError
from penstock.report.findings import Findings
from penstock.studies.journal import CellId, Entry, Journal, Row, Value, rows_of
from penstock.studies.sizes import Size

RESULTS = "cells.jsonl"
PATIENCE = 10.0
"""Seconds that an interrupted campaign waits for the cells already running."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """Workload number `workload` at the point `x` of a scenario."""

    scenario: str
    x: float
    workload: int

    @property
    def id(self) -> CellId:
        """What the results file calls it."""
        return (self.scenario, self.x, self.workload)


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """The cells of a study at one size and seed.

    `work` must be picklable (a function of a module, or a partial of one): it runs in other
    processes. `version` rises whenever the same cell would give other rows. Cells that measure time
    run `alone`, one after the other and in this process.
    """

    study: str
    version: int
    size: Size
    seed: int
    cells: Sequence[Cell]
    work: Callable[[Cell], list[dict[str, Value]]]
    alone: bool = False

    @property
    def header(self) -> dict[str, Value]:
        """What must agree for results to be of this campaign."""
        return {
            "study": self.study,
            "version": self.version,
            "size": self.size,
            "seed": self.seed,
            "penstock": __version__,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All rows of a finished campaign, in a fixed order, and the seconds each cell took."""

    campaign: Campaign
    rows: Sequence[Row]
    seconds: dict[CellId, float]


class Study(Protocol):
    """An evaluation that can be asked for by name."""

    name: str
    title: str

    def campaign(self, *, size: Size, seed: int) -> Campaign:
        """Return the cells to run."""
        ...

    def findings(self, results: Results) -> Findings:
        """Return what the results say."""
        ...


class WorkerDiedError(RuntimeError):
    """A worker process ended without an answer."""


def run(
    campaign: Campaign,
    directory: Path,
    *,
    executor: Executor | None = None,
    cores: int | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Results:
    """Run the cells that `directory` has no results of yet, and return the results of all.

    Without an `executor` (anything with concurrent.futures' interface, such as Dask's) the cells
    run in `cores` processes of this machine, one a core by default. An interrupt keeps what is
    finished, waits a little for what is running, and goes on as KeyboardInterrupt.
    """
    if executor is None and not campaign.alone:
        with local_workers(cores) as workers:
            return run(campaign, directory, executor=workers, advance=advance)
    with Journal(directory / RESULTS, campaign.header) as journal:
        wanted = {cell.id for cell in campaign.cells}
        advance(len(wanted & journal.entries.keys()))
        pending = [cell for cell in campaign.cells if cell.id not in journal.entries]
        if executor is None or campaign.alone:
            _run_alone(campaign.work, pending, journal, advance)
        else:
            _run_pending(campaign.work, pending, journal, executor, advance)
        entries = [journal.entries[cell] for cell in wanted]
    return Results(
        campaign=campaign,
        rows=rows_of(entries),
        seconds={entry.cell: entry.seconds for entry in entries},
    )


def _run_alone(
    work: Callable[[Cell], list[dict[str, Value]]],
    pending: Sequence[Cell],
    journal: Journal,
    advance: Callable[[int], None],
) -> None:
    for cell in pending:
        journal.add(_timed(work, cell))
        advance(1)


def _run_pending(
    work: Callable[[Cell], list[dict[str, Value]]],
    pending: Sequence[Cell],
    journal: Journal,
    executor: Executor,
    advance: Callable[[int], None],
) -> None:
    futures: dict[Future[Entry], Cell] = {}
    try:
        # Workers start with the first submissions; one that starts while interrupts are blocked
        # never sees the terminal's Ctrl-C, not even before it runs any line of ours.
        with _interrupts_blocked():
            futures |= {executor.submit(_timed, work, cell): cell for cell in pending}
        for future in as_completed(futures):
            journal.add(_entry(future, futures[future]))
            advance(1)
    except KeyboardInterrupt:
        _salvage(futures, journal)
        raise
    finally:
        for future in futures:
            future.cancel()


def _entry(future: Future[Entry], cell: Cell) -> Entry:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise WorkerDiedError(
            "a worker process died, perhaps for want of memory; finished cells are kept, "
            "and the same command (with fewer --jobs) resumes"
        ) from error
    except InputError as error:
        raise InputError(f"{cell.scenario} at {cell.x:g}: {error}") from error


def _salvage(futures: dict[Future[Entry], Cell], journal: Journal) -> None:
    running = [future for future in futures if not future.cancel()]
    try:
        for future in as_completed(running, timeout=PATIENCE):
            if futures[future].id not in journal.entries and future.exception() is None:
                journal.add(future.result())
    except TimeoutError:
        return


def _timed(work: Callable[[Cell], list[dict[str, Value]]], cell: Cell) -> Entry:
    start = time.perf_counter()
    rows = work(cell)
    return Entry(cell=cell.id, seconds=time.perf_counter() - start, rows=rows)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def local_workers(cores: int | None = None) -> Iterator[Executor]:
    """Give an executor of `cores` processes, all gone when the block ends, however it ends."""
    context = multiprocessing.get_context("spawn")
    # Started here, because on its start it unblocks interrupts that a caller has blocked.
    resource_tracker.ensure_running()
    watched, held = context.Pipe(duplex=False)
    count = cores or available_cores()
    workers = ProcessPoolExecutor(
        count, mp_context=context, initializer=_follow_parent, initargs=(watched,)
    )
    try:
        yield workers
        workers.shutdown()
    finally:
        held.close()
        workers.shutdown(cancel_futures=True)
        watched.close()


def available_cores() -> int:
    """Return how many cores this process may use (a batch system may have given it a few)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _follow_parent(watched: Connection) -> None:
    """End this worker when its parent lets go of the other end or is gone, and not before."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait() -> None:
        try:
            watched.poll(None)
        finally:
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def every(scenario: str, points: Sequence[float], workloads: int) -> Iterator[Cell]:
    """Yield the cells of `workloads` workloads at each point."""
    for x in points:
        for workload in range(workloads):
            yield Cell(scenario=scenario, x=x, workload=workload)
