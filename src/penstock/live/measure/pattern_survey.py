"""Observations of known access patterns: runs of the explorer, as I/O nodes see them.

While ranks replay a pattern, the survey asks every I/O node for an observation at a short interval.
It drops the intervals in which ranks begin and end, and keeps the same number of each run. The
speed of the storage hardly matters to the metrics of a pattern, so the emulated storage is slow
enough for small machines: a request takes milliseconds, whatever its size.
"""

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

import msgspec
from msgspec import Meta

from penstock.campaign.journal import CellId, Entry, Value
from penstock.errors import InputError
from penstock.learn.detection.samples import (
    JUDGED_BY,
    OPERATIONS,
    TRAINED_ON,
    Operation,
    Sample,
)
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment, check_emulation, check_roots
from penstock.live.measure import access_patterns, explorer, hosts_explorer
from penstock.live.measure.access_patterns import Phase
from penstock.live.measure.explorer import Cell, Distribution
from penstock.live.measure.scratch import in_memory
from penstock.live.measure.slurm_hosts import HostPlacement
from penstock.live.measure.survey import Survey
from penstock.live.protocol import messages
from penstock.model import Observation
from penstock.model.observation import PATTERNS, Pattern

T = TypeVar("T")
Runs = TypeVar("Runs", bound="ObservedRuns")
KIB = 2**10
EMULATED_STORAGE = "targets=4,count=4,rate=80MiB/s,latency=2ms,switch=0"
BEGIN_INTERVALS, END_INTERVALS = 1, 2
"""Intervals in which ranks begin and end; their ends are further apart than their begins."""
ATTEMPTS = 4


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """The cells of a survey: the product of all values."""

    sizes: tuple[int, ...] = (*TRAINED_ON, *JUDGED_BY)
    processes: tuple[int, ...] = (4, 8, 16)
    io_nodes: tuple[int, ...] = (1, 2, 4)
    patterns: tuple[Pattern, ...] = PATTERNS
    operations: tuple[Operation, ...] = OPERATIONS
    interval: Annotated[float, Meta(ge=0.01, le=60)] = 0.1
    seconds: Annotated[float, Meta(gt=0, le=3600)] = 1.5  # duration of a run
    volume: Annotated[int, Meta(ge=1, le=1 << 50)] = 320 * 2**20
    """Total size of the files of a run, which may end a run sooner."""
    keep: Annotated[int, Meta(ge=1, le=1000)] = 10  # observations per run

    def phases(self) -> list[Phase]:
        """Return the phases that ranks replay."""
        return [
            _phase(self, *combination)
            for combination in product(self.patterns, self.operations, self.sizes)
        ]

    def parameters(self, cell: Cell) -> tuple[Pattern, Operation, int]:
        """Return the pattern, operation and request size of a cell."""
        for combination in product(self.patterns, self.operations, self.sizes):
            if _name(*combination) == cell.phase:
                return combination
        raise KeyError(cell.phase)


FULL = Grid(
    processes=(128, 256, 512),
    io_nodes=(1, 2, 4, 8),
    interval=1.0,
    seconds=16.0,
    volume=4 * 2**30,
)
"""The grid of the thesis, with its interval and volume."""


def grid(*, full: bool, **changes: Any) -> Grid:
    """Return the grid of the thesis or the default one, with changes, or raise InputError."""
    result = msgspec.structs.replace(FULL if full else Grid(), **changes)
    try:
        msgspec.convert(msgspec.to_builtins(result), Grid)
    except msgspec.ValidationError as error:
        raise InputError(f"a grid to measure: {error}") from error
    intervals = result.keep / min(result.io_nodes) + BEGIN_INTERVALS + END_INTERVALS
    if result.seconds < intervals * result.interval:
        raise InputError(
            f"runs of {result.seconds:g} s are too short for {result.keep} observations of "
            f"{result.interval:g} s; give longer runs, or keep fewer"
        )
    return result


def _name(pattern: Pattern, operation: Operation, size: int) -> str:
    return f"{pattern}-{operation}-{size // KIB}K"


def _phase(grid: Grid, pattern: Pattern, operation: Operation, size: int) -> Phase:
    replayed = access_patterns.Pattern(
        operation=operation,
        path="observed",
        number_of_files="individual" if pattern == "file-per-process" else "shared",
        spatiality="strided" if pattern == "shared-strided" else "contiguous",
        total_size=grid.volume,
        request_size=size,
        stone_wall=grid.seconds,
    )
    return Phase(name=_name(pattern, operation, size), patterns=[replayed])


def mid_run(observations: Iterable[Observation]) -> list[Observation]:
    """Return the observations of one I/O node from the time when all its clients were active."""
    active = [one for one in observations if one.requests]
    return active[BEGIN_INTERVALS:-END_INTERVALS]


class ObservedRuns:
    """Runs cells on a deployment of its own, and observes its I/O nodes; a context manager."""

    settings: ClassVar[messages.Settings] = messages.Settings()
    """The I/O nodes' initial settings."""
    distribution: ClassVar[Distribution | None] = None
    """Which ranks share an I/O node; None: as they come."""

    def __init__(
        self,
        grid: Grid,
        *,
        root: Path,
        state: Path,
        emulate: str | None,
        seed: int,
        attempts: int = ATTEMPTS,
        placement: HostPlacement | None = None,
    ) -> None:
        self.grid, self.seed = grid, seed
        self._attempts = attempts
        roots = check_roots((root,))
        deployment = Deployment(
            state=str(state),
            roots=roots,
            io_nodes=max(grid.io_nodes),
            emulate=check_emulation(emulate, roots),
            attached=True,
            settings=self.settings,
        )
        self.explorer = hosts_explorer.make(
            deployment,
            grid.phases(),
            seed=seed,
            distribution=self.distribution,
            placement=placement,
        )

    def __enter__(self) -> Self:
        self.explorer.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.explorer.__exit__(*exception)

    @property
    def hosts(self) -> str:
        """The names of the hosts, if there are several: as observations keep them."""
        return " ".join(self.explorer.hosts)

    def observe(self, cell: Cell, select: Callable[[list[list[Observation]]], list[T]]) -> list[T]:
        """Run a cell and `select` from its observations; raise LaunchError for too few."""
        needed, problem = self.grid.keep, ""
        for _ in range(self._attempts):
            run, observations = self.explorer.observed(cell, self.grid.interval)
            selection = select(observations)
            if len(selection) >= needed and not run.marked:
                return selection
            problem = run.marked or f"{len(selection)} of {needed} observations in mid-run"
        raise launcher.LaunchError(
            f"{cell.phase}: {problem}; give longer runs, or a shorter interval"
        )


class PatternRuns(ObservedRuns):
    """Runs the cells of a grid, and keeps some observations of each."""

    def samples(self, cell: Cell) -> list[Sample]:
        """Run a cell and return observations from its middle; raise LaunchError for too few."""
        candidates = self.observe(cell, lambda nodes: [one for n in nodes for one in mid_run(n)])
        selection = random.Random(f"{self.seed} {cell}").sample(candidates, self.grid.keep)
        pattern, operation, size = self.grid.parameters(cell)
        return [
            Sample(
                pattern=pattern,
                operation=operation,
                request=size,
                processes=cell.processes,
                io_nodes=cell.io_nodes,
                observation=one,
                hosts=self.hosts,
            )
            for one in selection
        ]


def cells(grid: Grid, seed: int) -> list[Cell]:
    """Return the cells of a grid in a random order that the seed determines."""
    return explorer.cells(grid.phases(), grid.processes, grid.io_nodes, repeats=1, seed=seed)


def survey(
    grid: Grid,
    *,
    root: Path | None,
    emulate: str | None,
    seed: int,
    placement: HostPlacement | None = None,
) -> Survey[Cell]:
    """Return the survey of `penstock patterns measure`; without `root`, files are in memory."""
    return observed_survey(
        "patterns",
        PatternRuns,
        grid,
        cells(grid, seed),
        cell_id=lambda cell: (cell.phase, float(cell.processes), cell.io_nodes),
        rows=lambda runs, cell: [sample.row for sample in runs.samples(cell)],
        root=root,
        emulate=emulate,
        seed=seed,
        placement=placement,
    )


def observed_survey(
    study: str,
    kind: type[Runs],
    grid: Grid,
    cells: Sequence[T],
    *,
    cell_id: Callable[[T], CellId],
    rows: Callable[[Runs, T], list[dict[str, Value]]],
    emulate: str | None,
    seed: int,
    root: Path | None = None,
    placement: HostPlacement | None = None,
) -> Survey[T]:
    """Return a survey of cells that are run and observed; without `root`, files are in memory."""

    @contextmanager
    def session(state: Path) -> Iterator[Callable[[T], Entry]]:
        with ExitStack() as stack:
            folder = root or stack.enter_context(in_memory())
            runs = kind(
                grid, root=folder, state=state, emulate=emulate, seed=seed, placement=placement
            )
            stack.enter_context(runs)
            yield lambda cell: Entry(
                cell=cell_id(cell), seconds=grid.seconds, rows=rows(runs, cell)
            )

    digest = hashlib.sha256(msgspec.json.encode(grid)).hexdigest()[:16]
    return Survey(
        header={"study": study, "grid": digest, "emulated": emulate, "seed": seed}
        | explorer.hosts_of_header(placement),
        cells=cells,
        cell_id=cell_id,
        session=session,
    )
