"""Observations of accesses that no model was trained with, by real ranks through real I/O nodes.

`python -m penstock.live.measure.off_grid_survey PLAN` is the command of a job: it forks the ranks.
"""

import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

import msgspec

from penstock.campaign.journal import Entry
from penstock.learn.detection.off_grid import KINDS, MIB, SEGMENT, Access, Run
from penstock.learn.detection.samples import OPERATIONS, OffGridSample, Operation
from penstock.live.agent import runner
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment, check_emulation, check_roots
from penstock.live.measure.observation_poller import ObservationPoller
from penstock.live.measure.pattern_survey import mid_run
from penstock.live.measure.scratch import check_interrupted, in_memory
from penstock.live.measure.survey import Survey
from penstock.live.protocol.state_directory import StateDirectory

PROCESSES, IO_NODES = (6, 12), (1, 3)
SECONDS, INTERVAL, KEEP = 1.5, 0.1, 5


class Cell(NamedTuple):
    """One run."""

    kind: str
    operation: Operation
    processes: int
    io_nodes: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The work of the ranks of a run."""

    kind: str
    run: Run
    folder: str
    seconds: float


def survey(
    *,
    processes: Sequence[int] = PROCESSES,
    io_nodes: Sequence[int] = IO_NODES,
    emulate: str,
    seed: int,
) -> Survey[Cell]:
    """Return the survey of `penstock patterns measure --off-grid`; files are in memory."""
    cells = [Cell(*one) for one in product(KINDS, OPERATIONS, processes, io_nodes)]
    random.Random(seed).shuffle(cells)

    @contextmanager
    def session(folder: Path) -> Iterator[Callable[[Cell], Entry]]:
        with in_memory() as root, deployment(folder, root, max(io_nodes), emulate) as state:
            yield lambda cell: Entry(
                cell=_id(cell),
                seconds=SECONDS,
                rows=[one.row for one in observe(cell, state, root, max(io_nodes), seed)],
            )

    return Survey(
        header={"study": "off-grid patterns", "emulated": emulate, "seed": seed},
        cells=cells,
        cell_id=_id,
        session=session,
    )


def _id(cell: Cell) -> tuple[str, float, int]:
    return (f"{cell.kind} {cell.operation}", float(cell.processes), cell.io_nodes)


@contextmanager
def deployment(folder: Path, root: Path, io_nodes: int, emulate: str) -> Iterator[StateDirectory]:
    """Run a deployment of its own."""
    roots = check_roots((root,))
    state = StateDirectory(folder)
    controller = launcher.up(
        Deployment(
            state=str(folder),
            roots=roots,
            io_nodes=io_nodes,
            emulate=check_emulation(emulate, roots),
            attached=True,
        )
    )
    try:
        yield state
    finally:
        launcher.down(state)
        if controller is not None:
            controller.kill()
            controller.wait()


def observe(
    cell: Cell, state: StateDirectory, root: Path, io_nodes: int, seed: int
) -> list[OffGridSample]:
    """Run a cell, and return some observations from its middle."""
    kind = KINDS[cell.kind]
    run = kind.run(ranks=cell.processes, operation=cell.operation, seed=seed)
    plan = Plan(kind=cell.kind, run=run, folder=str(root), seconds=SECONDS)
    command = [sys.executable, "-P", "-m", __name__, msgspec.json.encode(plan).decode()]
    try:
        controls = [state.control_socket(k) for k in range(io_nodes)]
        with ObservationPoller(controls, INTERVAL) as poller:
            outcome = runner.run(state, command, name="off-grid", io_nodes=cell.io_nodes)
    finally:
        for left in root.iterdir():
            left.unlink()
    check_interrupted(outcome)
    if outcome.status:
        raise launcher.LaunchError(f"{cell.kind}: the ranks ended with status {outcome.status}")
    candidates = [one for node in poller.observations() for one in mid_run(node)]
    chosen = random.Random(f"{seed} {cell}").sample(candidates, min(KEEP, len(candidates)))
    return [
        OffGridSample(
            kind=kind.name,
            pattern=kind.pattern,
            operation=cell.operation,
            request=run.size,
            processes=cell.processes,
            io_nodes=cell.io_nodes,
            observation=one,
        )
        for one in chosen
    ]


def replay(accesses: Iterator[Access], folder: Path, extent: int, end: float) -> None:
    """Do what a rank does, until the end; reads find holes in files of this extent."""
    files: dict[str, int] = {}
    content = memoryview(bytes(8 * MIB))
    for access in accesses:
        if time.monotonic() >= end:
            return
        descriptor = files.get(access.file)
        if descriptor is None:
            while len(files) >= 8:
                os.close(files.pop(next(iter(files))))
            descriptor = os.open(folder / access.file, os.O_RDWR | os.O_CREAT, 0o600)
            os.ftruncate(descriptor, extent)
            files[access.file] = descriptor
        if access.read:
            os.pread(descriptor, access.bytes, access.offset)
        else:
            os.pwrite(descriptor, content[: access.bytes], access.offset)


def main() -> int:
    """Fork the ranks of the plan in the first argument, and wait for them."""
    plan = msgspec.json.decode(sys.argv[1], type=Plan)
    end = time.monotonic() + plan.seconds
    ranks = []
    for rank in range(plan.run.ranks):
        child = os.fork()
        if not child:
            accesses = KINDS[plan.kind].ranks(plan.run, rank)
            replay(accesses, Path(plan.folder), 2 * plan.run.ranks * SEGMENT, end)
            os._exit(0)
        ranks.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in ranks)


if __name__ == "__main__":
    sys.exit(main())
