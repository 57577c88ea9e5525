"""The survey of `penstock explore`: its rounds, its journal, and the tables and curves from it."""

import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from penstock.campaign.journal import CellId, Entry, Journal
from penstock.learn.convergence import Convergence
from penstock.live.deployment.spec import Deployment
from penstock.live.measure import explorer
from penstock.live.measure.access_patterns import DATA, Patterns, Phase
from penstock.live.measure.explorer import MEGA, Cell, Explorer, RankTime, Run
from penstock.live.measure.survey import Survey

PointId = tuple[str, int, int]
"""Phase, processes and I/O nodes of a cell."""
MAX_REPEATS = 10_000
"""Repeats of a point that a journal is searched for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergenceRounds:
    """Repeats points until their mean is known (paper write-models, III-D, Formula 2).

    A round measures every point once, in a random order; the next round repeats the points that
    have not converged. So the repeats of a point meet different times, not one moment.
    """

    points: Sequence[PointId]
    rule: Convergence
    max_repeats: int
    seed: int

    def pending(self, runs: Iterable[Run]) -> list[PointId]:
        """Return the points that have not converged; marked runs do not count."""
        times: dict[PointId, list[float]] = {point: [] for point in self.points}
        for run in runs:
            if not run.marked and run.cell[:3] in times:
                times[run.cell[:3]].append(run.makespan)
        return [point for point in self.points if not self.rule.reached(times[point])]

    def next_round(self, runs: Sequence[Run]) -> list[Cell]:
        """Return the next cells; none once all points have converged or are at the maximum."""
        repeats: dict[PointId, int] = dict.fromkeys(self.points, 0)
        for run in runs:
            if run.cell[:3] in repeats:
                repeats[run.cell[:3]] = max(repeats[run.cell[:3]], run.cell.repeat + 1)
        again = [
            (point, repeats[point])
            for point in self.pending(runs)
            if repeats[point] < self.max_repeats
        ]
        if not again:
            return []
        # After an interruption, points that are behind catch up first.
        first = min(repeat for _, repeat in again)
        cells = [Cell(*point, repeat) for point, repeat in again if repeat == first]
        random.Random(f"{self.seed} {first}").shuffle(cells)
        return cells


def survey(
    patterns: Patterns,
    deployment: Deployment,
    cells: Sequence[Cell],
    rounds: ConvergenceRounds | None,
    *,
    seed: int,
    mpi: bool,
) -> Survey[Cell]:
    """Return the survey of `penstock explore`; `deployment` still lacks its state directory."""

    @contextmanager
    def session(state: Path) -> Iterator[Callable[[Cell], Entry]]:
        own = msgspec.structs.replace(deployment, state=str(state))
        with Explorer(own, patterns.phases, seed=seed, mpi=mpi) as exploring:
            yield lambda cell: _entry(exploring.run(cell))

    return Survey(
        header=explorer.header(patterns, deployment, mpi=mpi),
        cells=cells,
        cell_id=_cell_id,
        session=session,
        next_round=None
        if rounds is None
        else lambda journal: rounds.next_round(runs(journal, rounds.points)),
    )


def runs(journal: Journal, points: Sequence[PointId], max_repeats: int = MAX_REPEATS) -> list[Run]:
    """Return the runs of these points, in their order."""
    return [
        _run(cell, journal.entries[_cell_id(cell)])
        for point in sorted(points)
        for repeat in range(max_repeats)
        if _cell_id(cell := Cell(*point, repeat)) in journal.entries
    ]


def _cell_id(cell: Cell) -> CellId:
    return (f"{cell.phase} by {cell.processes}", float(cell.io_nodes), cell.repeat)


def _entry(run: Run) -> Entry:
    """Return a run as the journal keeps it: one row for the run, then one per rank."""
    own = {k: v for k, v in asdict(run).items() if k not in {"cell", "ranks"}}
    rows = [own, *map(asdict, run.ranks)]
    return Entry(cell=_cell_id(run.cell), seconds=run.makespan, rows=rows)


def _run(cell: Cell, entry: Entry) -> Run:
    own: dict[str, Any] = dict(entry.rows[0])
    ranks = [msgspec.convert(row, RankTime) for row in entry.rows[1:]]
    return Run(cell=cell, ranks=ranks, **own)


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """The bandwidth of a phase over a number of I/O nodes: quartiles over repeats, in MB/s."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All results of an exploration; `emulated` describes the emulated file system, if any."""

    patterns: Patterns
    runs: Sequence[Run]
    points: Sequence[Point]
    emulated: str | None

    @classmethod
    def from_runs(cls, patterns: Patterns, runs: Sequence[Run], emulated: str | None) -> "Results":
        """Summarise the runs."""
        return cls(patterns=patterns, runs=runs, points=points(runs), emulated=emulated)

    @property
    def marked(self) -> list[Run]:
        """The runs that do not count."""
        return [run for run in self.runs if run.marked]

    def document(self) -> dict[str, Any]:
        """Return curves.json, which `penstock allocate` reads."""
        return {
            "unit": "MB/s",
            "emulated": self.emulated,
            "jobs": curves(self.points, self.runs, self.patterns.phases),
            "patterns": pattern_parts(self.points, self.patterns.phases),
        }

    def summary_rows(self) -> list[Mapping[str, object]]:
        """Return the rows of summary.csv: one per point."""
        emulated = {"emulated": self.emulated or ""}
        return [msgspec.structs.asdict(point) | emulated for point in self.points]

    def rank_rows(self) -> list[Mapping[str, object]]:
        """Return the rows of ranks.csv: one per operation of a rank."""
        return [run.cell._asdict() | asdict(time) for run in self.runs for time in run.ranks]


def points(runs: Iterable[Run]) -> list[Point]:
    """Summarise the repeats of each point; marked runs are counted, and left out of the figures."""
    by_point: dict[PointId, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.cell):
        by_point.setdefault(run.cell[:3], []).append(run)
    processes: dict[str, set[int]] = {}
    for phase, ranks, _ in by_point:
        processes.setdefault(phase, set()).add(ranks)
    result = []
    for (phase, ranks, n), repeats in by_point.items():
        good = [run for run in repeats if not run.marked]
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
        result.append(
            Point(
                job=phase if len(processes[phase]) == 1 else f"{phase}-{ranks}",
                phase=phase,
                processes=ranks,
                io_nodes=n,
                runs=len(repeats),
                marked=len(repeats) - len(good),
                **figures,
            )
        )
    return result


def curves(points: Iterable[Point], runs: Iterable[Run], phases: Iterable[Phase]) -> list[object]:
    """Return the jobs as `penstock allocate` reads them: medians in MB/s, volumes in MB."""
    nodes = {phase.name: phase.nodes for phase in phases}
    volumes: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        volumes.setdefault(run.cell[:2], []).append(run.bytes / MEGA)
    jobs: dict[str, dict[str, object]] = {}
    for point in points:
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


def pattern_parts(points: Iterable[Point], phases: Iterable[Phase]) -> dict[str, list[object]]:
    """Return the access patterns of each job's curve; a job with one of them is a base pattern."""
    by_name = {phase.name: phase for phase in phases}
    result: dict[str, list[object]] = {}
    for point in points:
        phase = by_name[point.phase]
        result[point.job] = [
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
    return result
