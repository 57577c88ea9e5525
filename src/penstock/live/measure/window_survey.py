"""Measures what windows of TWINS are worth: known access patterns, each with every window.

While ranks play a pattern, every I/O node is asked at a short interval what it saw, as a Council
asks; the reward of an interval is the mean bandwidth of those that were busy. All windows of a
scenario are run one after the other, in random order. Ranks next to each other have one I/O node,
as those of a compute node do.
"""

import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from penstock.config.tuning import PARAMETERS
from penstock.core.council import IDLEST
from penstock.data.windows import TWINS, Scenario, Worth
from penstock.live.measure.explorer import Cell
from penstock.live.measure.pattern_survey import Grid, WatchedRuns
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.model import Observation

EMULATED = "disks"
MIB = 2**20
WINDOWS = tuple(float(value) for value in PARAMETERS["window"].values)
DEFAULT = 1e-3
BASELINES = ("fifo", "hbrr")
"""Schedulers without a window, measured where the thesis shows them (Fig. 3.8)."""
BEGIN, END = 2, 3
"""Intervals in which ranks begin and end, counted from the first byte on."""
GRID = Grid(
    sizes=(32 * 2**10, 256 * 2**10),
    processes=(16, 8),
    seconds=2.7,
    volume=384 * MIB,
    keep=20,
)
FULL = Grid(
    sizes=GRID.sizes,
    processes=(128, 256, 512),
    io_nodes=(1, 2, 4, 8),
    interval=1.0,
    seconds=26.0,
    volume=4 * 2**30,
    keep=20,
)
"""The grid of the thesis (4.2.1), with its interval and volume."""


class Setting(NamedTuple):
    """How I/O nodes serve."""

    scheduler: str
    window: float


class Try(NamedTuple):
    """A scenario, run with one setting."""

    cell: Cell
    setting: Setting


def tries(grid: Grid, seed: int, windows: Sequence[float] = WINDOWS) -> list[Try]:
    """Return all that is to be run, most processes first; else the order is random.

    Schedulers without a window are among it where all windows are.
    """
    chance = random.Random(seed)
    found = []
    for processes in sorted(grid.processes, reverse=True):
        cells = [
            Cell(phase.name, processes, n, 0) for phase, n in product(grid.phases(), grid.io_nodes)
        ]
        chance.shuffle(cells)
        for cell in cells:
            settings = [Setting(TWINS, window) for window in windows]
            if grid.told(cell)[0] == "shared-strided" and set(windows) >= set(WINDOWS):
                settings += [Setting(name, DEFAULT) for name in BASELINES]
            chance.shuffle(settings)
            found += [Try(cell, setting) for setting in settings]
    return found


class Survey(WatchedRuns):
    """Runs tries, and takes what their intervals were worth."""

    def __init__(self, grid: Grid, *, root: Path, state: Path, emulate: str, seed: int) -> None:
        super().__init__(
            grid,
            root=root,
            state=state,
            emulate=emulate,
            seed=seed,
            settings=messages.Settings(scheduler=TWINS),
            blocks=True,
        )

    def take(self, wanted: Try) -> Worth:
        """Run a try and return its rewards; LaunchError: they are too few."""
        self._set(wanted.setting)
        found = self.watched(wanted.cell, rewards)
        return Worth(
            scenario=scenario(self.grid, wanted.cell),
            scheduler=wanted.setting.scheduler,
            window=wanted.setting.window,
            rewards=tuple(found[: self.grid.keep]),
        )

    def _set(self, setting: Setting) -> None:
        told = messages.Settings(scheduler=setting.scheduler, window=setting.window)
        for k in range(self.io_nodes):
            with ControlConnection(self.state.control_socket(k)) as node:
                node.ask(told, messages.Done)


def scenario(grid: Grid, cell: Cell) -> Scenario:
    """Return what a cell runs."""
    pattern, operation, size = grid.told(cell)
    return Scenario(
        pattern=pattern,
        operation=operation,
        request=size,
        processes=cell.processes,
        io_nodes=cell.io_nodes,
    )


def rewards(seen: Sequence[Sequence[Observation]]) -> list[float]:
    """Return the mean bandwidth of busy I/O nodes amid a run, interval by interval, in MiB/s."""
    found: list[float] = []
    for interval in zip(*seen, strict=False):
        busy = [one for one in interval if one.requests and one.busy >= IDLEST * one.seconds]
        if busy and (found or any(one.moved for one in busy)):
            found.append(fmean(one.moved / one.busy for one in busy) / MIB)
    return found[BEGIN:-END]
