"""Campaigns: many independent, deterministic cells, run on all cores, kept as they finish.

A cell is one workload of one point of one scenario; it gives a row for every policy. What a cell
gives depends on the cell and the campaign's seed alone, so the results do not depend on the number
of cores, on the order, or on how often the campaign was interrupted and resumed.
"""

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock import __version__
from penstock.campaign.executors.dispatch import Piece, complete, result
from penstock.campaign.executors.local import LocalPool
from penstock.campaign.executors.pool import ExecutorError, WorkerDiedError
from penstock.campaign.journal import CellId, Entry, Journal, Row, Value, rows_of
from penstock.campaign.machine_load import LoadMeter, MachineLoad, busiest
from penstock.campaign.sizes import Size
from penstock.errors import InputError

RESULTS = "cells.jsonl"
RESUME = "finished cells are kept, and the same command goes on from there"


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
    """All rows of a finished campaign, in a fixed order, and the seconds each cell took.

    Cells that run alone are timed by the clock, the others by the processor time of their process,
    which does not depend on what else the cores do.
    """

    campaign: Campaign
    rows: Sequence[Row]
    seconds: dict[CellId, float]
    machine: MachineLoad | None = None
    """What others took of the machine, at most; None: no cell measured time."""

    @classmethod
    def from_entries(cls, campaign: Campaign, entries: Sequence[Entry]) -> "Results":
        """Return the results of a campaign from its finished cells."""
        seconds = {entry.cell: entry.seconds for entry in entries}
        machine = busiest(entry.machine for entry in entries if entry.machine is not None)
        return cls(campaign=campaign, rows=rows_of(entries), seconds=seconds, machine=machine)


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
    run in `cores` processes of this machine, one per core by default. An interrupt keeps what is
    finished, waits a little for what is running, and goes on as KeyboardInterrupt.
    """
    if executor is None and not campaign.alone:
        with LocalPool(cores) as pool:
            return run(campaign, directory, executor=pool.executor(), advance=advance)
    with Journal(directory / RESULTS, campaign.header) as journal:
        ids = {cell.id for cell in campaign.cells}
        advance(len(ids & journal.entries.keys()))
        pending = [cell for cell in campaign.cells if cell.id not in journal.entries]
        if executor is None or campaign.alone:
            _run_alone(campaign.work, pending, journal, advance)
        else:
            _run_pending(campaign.work, pending, journal, executor, advance)
        return Results.from_entries(campaign, journal.finished(cell.id for cell in campaign.cells))


def _run_alone(
    work: Callable[[Cell], list[dict[str, Value]]],
    pending: Sequence[Cell],
    journal: Journal,
    advance: Callable[[int], None],
) -> None:
    if not pending:
        return
    meter = LoadMeter()
    for cell in pending:
        entry = timed(work, cell)
        journal.add(msgspec.structs.replace(entry, machine=meter.measured()))
        advance(1)


def _run_pending(
    work: Callable[[Cell], list[dict[str, Value]]],
    pending: Sequence[Cell],
    journal: Journal,
    executor: Executor,
    advance: Callable[[int], None],
) -> None:
    cells = {cell.id: cell for cell in pending}

    def keep(key: Hashable, future: "Future[Entry]") -> None:
        if key not in journal.entries:
            journal.add(finished(future, cells[key]))  # type: ignore[index]
            advance(1)

    pieces = (
        Piece(key=c.id, executor=executor, call=(timed, work, c, time.process_time))
        for c in pending
    )
    complete(pieces, keep)


def finished(future: "Future[Entry]", cell: Cell) -> Entry:
    """Return what a worker made of a cell, or raise what went wrong, in words."""
    try:
        entry: Entry = result(future)
    except WorkerDiedError as error:
        raise WorkerDiedError(f"{cell.scenario} at {cell.x:g}: {error}; {RESUME}") from error
    except ExecutorError as error:
        raise type(error)(f"{error}; {RESUME}") from error
    except InputError as error:
        raise InputError(f"{cell.scenario} at {cell.x:g}: {error}") from error
    return entry


def timed(
    work: Callable[[Cell], list[dict[str, Value]]],
    cell: Cell,
    clock: Callable[[], float] = time.perf_counter,
) -> Entry:
    """Run a cell; what it gives says how long it took."""
    start = clock()
    rows = work(cell)
    return Entry(cell=cell.id, seconds=clock() - start, rows=rows)


def every(scenario: str, points: Sequence[float], workloads: int) -> Iterator[Cell]:
    """Yield the cells of `workloads` workloads at each point."""
    for x in points:
        for workload in range(workloads):
            yield Cell(scenario=scenario, x=x, workload=workload)
