"""The reward of every TWINS window for known access patterns.

While ranks replay a pattern, the survey asks every I/O node for an observation at a short interval,
as the tuner of a controller does; the reward of an interval is the mean bandwidth of the busy I/O
nodes. All windows of a scenario run one after the other, in random order. Consecutive ranks share
an I/O node, like those of one compute node.
"""

import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from penstock.campaign.journal import CellId
from penstock.config.tuning import PARAMETERS
from penstock.core.council import IDLEST
from penstock.data.windows import TWINS, RewardSeries, Scenario
from penstock.errors import InputError
from penstock.live.measure.explorer import Cell
from penstock.live.measure.pattern_survey import Grid, ObservedRuns, observed_survey
from penstock.live.measure.slurm_hosts import HostPlacement
from penstock.live.measure.survey import Survey
from penstock.live.protocol import messages
from penstock.model import Observation

EMULATED_STORAGE = "disks"
MIB = 2**20
WINDOWS = tuple(float(value) for value in PARAMETERS["window"].values)
DEFAULT_WINDOW = 1e-3
BASELINES = ("fifo", "hbrr")
"""Schedulers without a window, measured where the thesis shows them (Fig. 3.8)."""
BEGIN_INTERVALS, END_INTERVALS = 2, 3
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


def check(grid: Grid) -> None:
    """Raise InputError for a grid that cannot be measured."""
    if min(*grid.processes, *grid.io_nodes) < 1:
        raise InputError("--processes and --io-nodes: give 1 or more of each")
    if grid.seconds < (grid.keep + BEGIN_INTERVALS + END_INTERVALS) * grid.interval:
        raise InputError(
            f"--seconds {grid.seconds:g} is too short for {grid.keep} intervals of "
            f"{grid.interval:g} s; give longer runs, or --keep fewer"
        )


class Setting(NamedTuple):
    """The scheduler of all I/O nodes, and its window."""

    scheduler: str
    window: float


class Trial(NamedTuple):
    """A scenario with one setting."""

    cell: Cell
    setting: Setting


def trials(grid: Grid, seed: int, windows: Sequence[float] = WINDOWS) -> list[Trial]:
    """Return all trials: the largest numbers of processes first, otherwise in random order.

    With all windows, schedulers without a window are included.
    """
    generator = random.Random(seed)
    result = []
    for processes in sorted(grid.processes, reverse=True):
        cells = [
            Cell(phase.name, processes, n, 0) for phase, n in product(grid.phases(), grid.io_nodes)
        ]
        generator.shuffle(cells)
        for cell in cells:
            settings = [Setting(TWINS, window) for window in windows]
            if grid.parameters(cell)[0] == "shared-strided" and set(windows) >= set(WINDOWS):
                settings += [Setting(name, DEFAULT_WINDOW) for name in BASELINES]
            generator.shuffle(settings)
            result += [Trial(cell, setting) for setting in settings]
    return result


class WindowRuns(ObservedRuns):
    """Runs trials, and returns the rewards of their intervals."""

    settings = messages.Settings(scheduler=TWINS)
    distribution = "block"

    def measure(self, trial: Trial) -> RewardSeries:
        """Run a trial and return its rewards; raise LaunchError for too few."""
        scheduler, window = trial.setting
        self.explorer.configure(messages.Settings(scheduler=scheduler, window=window))
        values = self.observe(trial.cell, rewards)
        return RewardSeries(
            scenario=scenario(self.grid, trial.cell),
            scheduler=scheduler,
            window=window,
            rewards=tuple(values[: self.grid.keep]),
            hosts=self.hosts,
        )


def survey(
    grid: Grid,
    *,
    windows: Sequence[float] = WINDOWS,
    emulate: str | None,
    seed: int,
    root: Path | None = None,
    placement: HostPlacement | None = None,
) -> Survey[Trial]:
    """Return the survey of `penstock tuner measure`."""

    def cell_id(trial: Trial) -> CellId:
        setting = f"{trial.setting.scheduler}-{round(trial.setting.window * 1e6)}"
        return (f"{trial.cell.phase} {setting}", float(trial.cell.processes), trial.cell.io_nodes)

    return observed_survey(
        "windows",
        WindowRuns,
        grid,
        trials(grid, seed, windows),
        cell_id=cell_id,
        rows=lambda runs, trial: [runs.measure(trial).row],
        emulate=emulate,
        seed=seed,
        root=root,
        placement=placement,
    )


def scenario(grid: Grid, cell: Cell) -> Scenario:
    """Return the scenario of a cell."""
    pattern, operation, size = grid.parameters(cell)
    return Scenario(
        pattern=pattern,
        operation=operation,
        request=size,
        processes=cell.processes,
        io_nodes=cell.io_nodes,
    )


def rewards(observations: Sequence[Sequence[Observation]]) -> list[float]:
    """Return the mean bandwidth of busy I/O nodes in mid-run, per interval, in MiB/s."""
    result: list[float] = []
    for interval in zip(*observations, strict=False):
        busy = [one for one in interval if one.requests and one.busy >= IDLEST * one.seconds]
        if busy and (result or any(one.moved for one in busy)):
            result.append(fmean(one.moved / one.busy for one in busy) / MIB)
    return result[BEGIN_INTERVALS:-END_INTERVALS]
