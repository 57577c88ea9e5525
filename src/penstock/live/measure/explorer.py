"""Measures access patterns through the real layer, over numbers of I/O nodes (after FORGE).

Every run is a job of a private deployment, with as many I/O nodes as the run is to have. A run
counts only if the job's own counters say that every byte went where it should: through I/O nodes,
or, with none, past them.
"""

import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from penstock.live.agent import runner
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.measure import mpiexec
from penstock.live.measure import rank as player
from penstock.live.measure.access_patterns import DATA, Phase
from penstock.live.measure.rank import Answer, Did, Plan
from penstock.live.measure.scratch import INTERRUPTS, InterruptedRun
from penstock.live.protocol.counters import direct_bytes, fail_opens, forwarded_bytes
from penstock.live.protocol.state_directory import StateDirectory

MEGA = 1e6
PATIENCE = 86400.0
"""Seconds that a rank waits for the others, which may write for long; none waits for a dead one."""


class Cell(NamedTuple):
    """What is measured: a phase by so many processes over so many I/O nodes, for the nth time."""

    phase: str
    processes: int
    io_nodes: int
    repeat: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One operation of one rank: seconds since the first rank began it."""

    operation: str
    repetition: int
    pattern: int
    rank: int
    bytes: int
    seconds: float
    files: str = ""
    """"shared" or "individual"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run: its bandwidth in MB/s, or why it does not count."""

    cell: Cell
    bandwidth: float
    bytes: int
    makespan: float
    forwarded_bytes: int
    direct_bytes: int
    fail_opens: int
    marked: str = ""
    ranks: list[Timed] = field(default_factory=list)


def cells(
    phases: Sequence[Phase],
    processes: Sequence[int],
    io_nodes: Sequence[int],
    *,
    repeats: int,
    seed: int,
) -> list[Cell]:
    """Return all that is to be measured, in a random order that the seed decides."""
    found = [
        Cell(phase.name, ranks, n, repeat)
        for phase in phases
        for ranks in ([phase.processes] if phase.processes and not processes else processes or [4])
        for n in io_nodes
        for repeat in range(repeats)
    ]
    random.Random(seed).shuffle(found)
    return found


class Explorer:
    """Runs phases in a directory, on a deployment of its own; a context manager."""

    def __init__(
        self,
        deployment: Deployment,
        phases: Iterable[Phase],
        *,
        seed: int,
        mpi: bool,
        blocks: bool = False,
    ) -> None:
        self._deployment = deployment
        self._phases = {phase.name: phase for phase in phases}
        self._seed = seed
        self._mpi = mpi
        self._blocks = blocks
        self._state = StateDirectory(Path(deployment.state))
        self._controller: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Explorer":
        self._controller = launcher.up(self._deployment)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            launcher.down(self._state)
        finally:
            if self._controller is not None:
                self._controller.kill()
                self._controller.wait()

    def run(self, cell: Cell) -> Run:
        """Measure once; its files are gone afterwards."""
        with (
            tempfile.TemporaryDirectory(prefix="penstock-ranks-") as results,
            tempfile.TemporaryDirectory(prefix="explore-", dir=self._deployment.roots[0]) as folder,
        ):
            plan = Plan(
                phase=self._phases[cell.phase],
                folder=folder,
                ranks=cell.processes,
                seed=self._seed,
                results=results,
                patience=PATIENCE,
                mpi=self._mpi,
                blocks=cell.io_nodes if self._blocks else 0,
            )
            player.prefill(plan)
            outcome = runner.run(
                self._state, self._command(plan), name=cell.phase, io_nodes=cell.io_nodes
            )
            if outcome.status - 128 in INTERRUPTS:
                raise InterruptedRun(outcome.status - 128)
            did = _collected(plan, outcome.status)
            return _judged(cell, plan, did, outcome.counters)

    def _command(self, plan: Plan) -> list[str]:
        file = Path(plan.results) / "plan.json"
        file.write_bytes(msgspec.json.encode(plan))
        command = [sys.executable, "-P", "-m", "penstock.live.measure.rank", str(file)]
        if not self._mpi:
            return command
        return mpiexec.command(plan.ranks, command)


def _collected(plan: Plan, status: int) -> list[Did]:
    did: list[Did] = []
    errors = []
    for rank in range(plan.ranks):
        try:
            answer = msgspec.json.decode(plan.result(rank).read_bytes(), type=Answer)
        except (OSError, msgspec.DecodeError):
            errors.append(f"rank {rank} left no result; the ranks ended with status {status}")
            continue
        did += answer.did
        if answer.error:
            errors.append(answer.error)
    if errors:
        # A rank that failed breaks the barrier of the others: theirs is not the cause.
        cause = next((error for error in errors if "Barrier" not in error), errors[0])
        raise launcher.LaunchError(f"phase {plan.phase.name!r}: {cause}")
    return did


def _judged(cell: Cell, plan: Plan, did: list[Did], counters: Mapping[str, int]) -> Run:
    """Return the run, marked unless every byte went where it should."""
    ranks, makespan = _timed(did, [pattern.number_of_files for pattern in plan.phase.patterns])
    moved = sum(d.bytes for d in did)
    forwarded, direct = forwarded_bytes(counters), direct_bytes(counters)
    wanted = (moved, 0) if cell.io_nodes else (0, moved)
    marked = ""
    if (forwarded, direct) != wanted:
        marked = (
            f"of {moved} bytes {forwarded} were forwarded and {direct} went direct; "
            f"all should have been {'forwarded' if cell.io_nodes else 'direct'}"
        )
    elif fail_opens(counters):
        marked = f"{fail_opens(counters)} calls failed open"
    return Run(
        cell=cell,
        bandwidth=moved / makespan / MEGA,
        bytes=moved,
        makespan=makespan,
        forwarded_bytes=forwarded,
        direct_bytes=direct,
        fail_opens=fail_opens(counters),
        marked=marked or player.validate(plan, did),
        ranks=ranks,
    )


def _timed(did: list[Did], files: Sequence[str] = ()) -> tuple[list[Timed], float]:
    """Return each rank's times, and the makespan: the slowest rank's, over all data operations."""
    began: dict[tuple[int, int], float] = {}
    slowest: dict[tuple[int, int], float] = {}
    for d in did:
        key = (d.repetition, d.pattern)
        began[key] = min(began.get(key, d.began), d.began)
    ranks = []
    for d in did:
        key = (d.repetition, d.pattern)
        seconds = d.ended - began[key]
        if d.operation in DATA:
            slowest[key] = max(slowest.get(key, 0.0), seconds)
        ranks.append(
            Timed(
                operation=d.operation,
                repetition=d.repetition,
                pattern=d.pattern,
                rank=d.rank,
                bytes=d.bytes,
                seconds=seconds,
                files=files[d.pattern] if files else "",
            )
        )
    return ranks, max(sum(slowest.values()), 1e-9)


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """What a phase reaches over so many I/O nodes: quartiles over repeats, in MB/s."""

    job: str
    phase: str
    processes: int
    io_nodes: int
    runs: int
    marked: int
    minimum: float | None = None
    q1: float | None = None
    median: float | None = None
    q3: float | None = None
    maximum: float | None = None
    makespan: float | None = None


def points(runs: Iterable[Run]) -> list[Point]:
    """Return the summary; marked runs are counted and left out of the figures."""
    by_cell: dict[tuple[str, int, int], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.cell):
        by_cell.setdefault(run.cell[:3], []).append(run)
    processes: dict[str, set[int]] = {}
    for phase, ranks, _ in by_cell:
        processes.setdefault(phase, set()).add(ranks)
    found = []
    for (phase, ranks, n), several in by_cell.items():
        good = [run for run in several if not run.marked]
        figures: dict[str, float] = {}
        if good:
            values = [run.bandwidth for run in good]
            quartiles = (
                statistics.quantiles(values, n=4, method="inclusive")
                if len(values) > 1
                else values * 3
            )
            figures = dict(zip(("q1", "median", "q3"), quartiles, strict=True))
            figures |= {"minimum": min(values), "maximum": max(values)}
            figures["makespan"] = statistics.median(run.makespan for run in good)
        found.append(
            Point(
                job=phase if len(processes[phase]) == 1 else f"{phase}-{ranks}",
                phase=phase,
                processes=ranks,
                io_nodes=n,
                runs=len(several),
                marked=len(several) - len(good),
                **figures,
            )
        )
    return found


def curves(found: Iterable[Point], runs: Iterable[Run], phases: Iterable[Phase]) -> list[object]:
    """Return the jobs as `penstock allocate` reads them: medians in MB/s, volumes in MB."""
    nodes = {phase.name: phase.nodes for phase in phases}
    volumes: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        volumes.setdefault(run.cell[:2], []).append(run.bytes / MEGA)
    jobs: dict[str, dict[str, object]] = {}
    for point in found:
        if point.median is None:
            continue
        job = jobs.setdefault(
            point.job,
            {
                "id": point.job,
                "nodes": nodes[point.phase],
                "processes": point.processes,
                "curve": {},
                "volume": statistics.median(volumes[point.phase, point.processes]),
            },
        )
        curve = job["curve"]
        assert isinstance(curve, dict)
        curve[str(point.io_nodes)] = point.median
    return list(jobs.values())


def parts(found: Iterable[Point], phases: Iterable[Phase]) -> dict[str, list[object]]:
    """Return which patterns each job's curve is of; one of a single pattern is a base pattern."""
    known = {phase.name: phase for phase in phases}
    told: dict[str, list[object]] = {}
    for point in found:
        phase = known[point.phase]
        told[point.job] = [
            {
                "operation": pattern.operation,
                "layout": "shared" if pattern.number_of_files == "shared" else "file-per-process",
                "spatiality": pattern.spatiality,
                "request_size": pattern.request_size,
                "volume": phase.repetitions
                * point.processes
                * pattern.requests(point.processes)
                * pattern.request_size,
            }
            for pattern in phase.patterns
            if pattern.operation in DATA
        ]
    return told
