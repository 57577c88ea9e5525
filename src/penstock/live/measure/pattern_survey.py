"""Takes observations of known access patterns: the explorer's runs, and what I/O nodes see of them.

While ranks play a pattern, every I/O node is asked at a short interval what it saw. The intervals
in which the ranks begin and end are dropped, and the same number is kept of each run. How fast the
storage is hardly matters to the metrics of a pattern, so the emulated one is slow enough for small
machines: a request takes milliseconds, whatever its size.
"""

import random
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import msgspec
from msgspec import Meta

from penstock.errors import InputError
from penstock.learn.detection.samples import (
    JUDGED_BY,
    OPERATIONS,
    TRAINED_ON,
    Operation,
    Sample,
)
from penstock.live.agent import runner
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment, emulated, managed
from penstock.live.measure import access_patterns as patterns
from penstock.live.measure import explorer
from penstock.live.measure.access_patterns import Phase
from penstock.live.measure.explorer import Cell, Explorer
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.state_directory import StateDirectory
from penstock.model import Observation
from penstock.model.observation import PATTERNS, Pattern

T = TypeVar("T")
KIB = 2**10
EMULATED = "targets=4,count=4,rate=80MiB/s,latency=2ms,switch=0"
BEGIN, END = 1, 2
"""Intervals in which ranks begin and end; they end less together than they begin."""
ATTEMPTS = 4
MOST_INTERVALS = 4096


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """What is run: every pattern with every other value."""

    sizes: tuple[int, ...] = (*TRAINED_ON, *JUDGED_BY)
    processes: tuple[int, ...] = (4, 8, 16)
    io_nodes: tuple[int, ...] = (1, 2, 4)
    patterns: tuple[Pattern, ...] = PATTERNS
    operations: tuple[Operation, ...] = OPERATIONS
    interval: Annotated[float, Meta(ge=0.01, le=60)] = 0.1
    seconds: Annotated[float, Meta(gt=0, le=3600)] = 1.5  # that the ranks of a run play
    volume: Annotated[int, Meta(ge=1, le=1 << 50)] = 320 * 2**20
    """Bytes of a run's files together; it may be over sooner by that."""
    keep: Annotated[int, Meta(ge=1, le=1000)] = 10  # observations of a run

    def phases(self) -> list[Phase]:
        """Return what ranks play."""
        return [_phase(self, *what) for what in product(self.patterns, self.operations, self.sizes)]

    def told(self, cell: Cell) -> tuple[Pattern, Operation, int]:
        """Return what a cell's phase was."""
        for what in product(self.patterns, self.operations, self.sizes):
            if _name(*what) == cell.phase:
                return what
        raise KeyError(cell.phase)


FULL = Grid(
    processes=(128, 256, 512),
    io_nodes=(1, 2, 4, 8),
    interval=1.0,
    seconds=16.0,
    volume=4 * 2**30,
)
"""The grid of the thesis, with its interval and volume."""


def grid(*, full: bool, **told: Any) -> Grid:
    """Return the thesis' grid or ours, but for what is told; InputError: that cannot be."""
    whole = msgspec.structs.replace(FULL if full else Grid(), **told)
    try:
        msgspec.convert(msgspec.to_builtins(whole), Grid)
    except msgspec.ValidationError as error:
        raise InputError(f"a grid to measure: {error}") from error
    if whole.seconds < (whole.keep / min(whole.io_nodes) + BEGIN + END) * whole.interval:
        raise InputError(
            f"{whole.seconds:g} s of a run are too short for {whole.keep} observations of "
            f"{whole.interval:g} s; play for longer, or keep fewer"
        )
    return whole


def _name(pattern: Pattern, operation: Operation, size: int) -> str:
    return f"{pattern}-{operation}-{size // KIB}K"


def _phase(grid: Grid, pattern: Pattern, operation: Operation, size: int) -> Phase:
    played = patterns.Pattern(
        operation=operation,
        path="observed",
        number_of_files="individual" if pattern == "file-per-process" else "shared",
        spatiality="strided" if pattern == "shared-strided" else "contiguous",
        total_size=grid.volume,
        request_size=size,
        stone_wall=grid.seconds,
    )
    return Phase(name=_name(pattern, operation, size), patterns=[played])


class Watch:
    """Asks I/O nodes what they saw, every so often, in a thread; a context manager."""

    def __init__(self, state: StateDirectory, io_nodes: int, interval: float) -> None:
        self._state = state
        self._interval = interval
        self._over = threading.Event()
        self._seen: list[deque[Observation]] = [
            deque(maxlen=MOST_INTERVALS) for _ in range(io_nodes)
        ]
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Watch":
        with runner.blocked(runner.FORWARDED):  # they are for the job
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def seen(self) -> list[list[Observation]]:
        """Return the observations of each I/O node, in their order; after the block."""
        if self._failed is not None:
            raise launcher.LaunchError(f"an I/O node does not answer: {self._failed}")
        return [list(one) for one in self._seen]

    def _run(self) -> None:
        try:
            with ExitStack() as stack:
                nodes = [
                    stack.enter_context(ControlConnection(self._state.control_socket(k)))
                    for k in range(len(self._seen))
                ]
                while not self._over.wait(self._interval):
                    for seen, node in zip(self._seen, nodes, strict=True):
                        seen.append(
                            node.ask(
                                messages.GetObservation(), messages.NodeObservation
                            ).to_observation()
                        )
        except Exception as error:
            self._failed = error


def mid_run(seen: Iterable[Observation]) -> list[Observation]:
    """Return what one I/O node saw while all of its clients were at work."""
    active = [one for one in seen if one.requests]
    return active[BEGIN:-END]


class WatchedRuns:
    """Runs cells in a deployment of its own, whose I/O nodes are watched; a context manager."""

    def __init__(
        self,
        grid: Grid,
        *,
        root: Path,
        state: Path,
        emulate: str,
        seed: int,
        settings: messages.Settings | None = None,
        blocks: bool = False,
    ) -> None:
        self.grid = grid
        self.state = StateDirectory(state)
        self.io_nodes = max(grid.io_nodes)
        roots = managed((root,))
        deployment = Deployment(
            state=str(state),
            roots=roots,
            io_nodes=self.io_nodes,
            emulate=emulated(emulate, roots),
            attached=True,
            settings=settings or messages.Settings(),
        )
        self._explorer = Explorer(deployment, grid.phases(), seed=seed, mpi=False, blocks=blocks)

    def __enter__(self) -> Self:
        self._explorer.__enter__()
        return self

    def __exit__(self, *why: object) -> None:
        self._explorer.__exit__(*why)

    def watched(self, cell: Cell, kept: Callable[[list[list[Observation]]], list[T]]) -> list[T]:
        """Run a cell and return what is `kept` of what was seen; LaunchError: it is too little."""
        least, why = self.grid.keep, ""
        for _ in range(ATTEMPTS):
            with Watch(self.state, self.io_nodes, self.grid.interval) as watch:
                run = self._explorer.run(cell)
            found = kept(watch.seen())
            if len(found) >= least and not run.marked:
                return found
            why = run.marked or f"{len(found)} of {least} observations amid the run"
        raise launcher.LaunchError(f"{cell.phase}: {why}; play for longer, or observe more often")


class Survey(WatchedRuns):
    """Runs cells of a grid, and takes some of what was seen amid each."""

    def __init__(self, grid: Grid, *, root: Path, state: Path, emulate: str, seed: int) -> None:
        super().__init__(grid, root=root, state=state, emulate=emulate, seed=seed)
        self._seed = seed

    def take(self, cell: Cell) -> list[Sample]:
        """Run a cell and return what was seen amid it; LaunchError: that is too little."""
        kept = self.watched(cell, lambda seen: [one for node in seen for one in mid_run(node)])
        chosen = random.Random(f"{self._seed} {cell}").sample(kept, self.grid.keep)
        return [_sample(self.grid, cell, one) for one in chosen]


def cells(grid: Grid, seed: int) -> list[Cell]:
    """Return the cells of a grid in a random order that the seed decides."""
    return explorer.cells(grid.phases(), grid.processes, grid.io_nodes, repeats=1, seed=seed)


def _sample(grid: Grid, cell: Cell, seen: Observation) -> Sample:
    pattern, operation, size = grid.told(cell)
    return Sample(
        pattern=pattern,
        operation=operation,
        request=size,
        processes=cell.processes,
        io_nodes=cell.io_nodes,
        observation=seen,
    )
