"""The survey of `penstock explore`: its rounds, its journal, and the tables and curves from it."""

import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from penstock.campaign.journal import CellId, Entry, Journal
from penstock.learn.convergence import Convergence
from penstock.live.deployment.spec import Deployment
from penstock.live.measure import explorer, hosts_explorer
from penstock.live.measure.access_patterns import DATA, Patterns, Phase
from penstock.live.measure.explorer import (
    MEGA,
    Cell,
    Distribution,
    RankTime,
    Run,
    data_operations,
)
from penstock.live.measure.io_node_work import IoNodeWork
from penstock.live.measure.slurm_hosts import HostPlacement
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
    distribution: Distribution,
    placement: HostPlacement | None = None,
) -> Survey[Cell]:
    """Return the survey of `penstock explore`; `deployment` still lacks its state directory."""

    @contextmanager
    def session(state: Path) -> Iterator[Callable[[Cell], Entry]]:
        own = msgspec.structs.replace(deployment, state=str(state))
        with hosts_explorer.make(
            own,
            patterns.phases,
            seed=seed,
            mpi=mpi,
            distribution=distribution,
            placement=placement,
        ) as exploring:
            yield lambda cell: _entry(exploring.run(cell))

    return Survey(
        header=explorer.header(
            patterns, deployment, mpi=mpi, distribution=distribution, placement=placement
        ),
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
    """Return a run as the journal keeps it: a row for the run, then for ranks and I/O nodes."""
    own = {k: v for k, v in asdict(run).items() if k not in {"cell", "ranks", "io_nodes"}}
    rows = [own, *map(asdict, run.ranks), *map(asdict, run.io_nodes)]
    return Entry(cell=_cell_id(run.cell), seconds=run.makespan, rows=rows)


def _run(cell: Cell, entry: Entry) -> Run:
    own: dict[str, Any] = dict(entry.rows[0])
    ranks = [msgspec.convert(row, RankTime) for row in entry.rows[1:] if "operation" in row]
    io_nodes = [msgspec.convert(row, IoNodeWork) for row in entry.rows[1:] if "ranks" in row]
    return Run(cell=cell, ranks=ranks, io_nodes=io_nodes, **own)


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
    hosts: int | None = None  # of the ranks; an older version did not record it


class OperationPoint(Point, frozen=True, kw_only=True):
    """The same of a phase's writes, or of its reads; and times of ranks, over all repeats."""

    operation: str
    bytes: float | None = None  # median
    fastest_rank: float | None = None
    q1_rank: float | None = None
    median_rank: float | None = None
    q3_rank: float | None = None
    slowest_rank: float | None = None
    mean_rank: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All results of an exploration; `emulated` describes the emulated file system, if any."""

    patterns: Patterns
    runs: Sequence[Run]
    points: Sequence[Point]
    operations: Sequence[OperationPoint]
    emulated: str | None

    @classmethod
    def from_runs(cls, patterns: Patterns, runs: Sequence[Run], emulated: str | None) -> "Results":
        """Summarise the runs."""
        return cls(
            patterns=patterns,
            runs=runs,
            points=points(runs),
            operations=operation_points(runs),
            emulated=emulated,
        )

    @property
    def marked(self) -> list[Run]:
        """The runs that do not count."""
        return [run for run in self.runs if run.marked]

    @property
    def hosts(self) -> list[str]:
        """The names of the hosts that ranks or I/O nodes ran on."""
        ranks = {one.host for run in self.runs for one in run.ranks}
        io_nodes = {one.host for run in self.runs for one in run.io_nodes}
        return sorted((ranks | io_nodes) - {""})

    def document(self) -> dict[str, Any]:
        """Return curves.json, which `penstock allocate` reads."""
        return {
            "unit": "MB/s",
            "emulated": self.emulated,
            "hosts": self.hosts,
            "jobs": curves(self.points, self.runs, self.patterns.phases),
            "operations": operation_curves(self.operations),
            "patterns": pattern_parts(self.points, self.patterns.phases),
        }

    def summary_rows(self) -> list[Mapping[str, object]]:
        """Return the rows of summary.csv: one per point."""
        return [msgspec.structs.asdict(point) | self._storage for point in self.points]

    def operation_rows(self) -> list[Mapping[str, object]]:
        """Return the rows of operations.csv: the writes and the reads of each point."""
        return [msgspec.structs.asdict(point) | self._storage for point in self.operations]

    def rank_rows(self) -> list[Mapping[str, object]]:
        """Return the rows of ranks.csv: one per operation of a rank."""
        return [run.cell._asdict() | asdict(time) for run in self.runs for time in run.ranks]

    def io_node_rows(self) -> list[Mapping[str, object]]:
        """Return the rows of io-nodes.csv: one per run and I/O node."""
        return [run.cell._asdict() | asdict(work) for run in self.runs for work in run.io_nodes]

    @property
    def _storage(self) -> dict[str, str]:
        return {"emulated": self.emulated or ""}


def points(runs: Iterable[Run]) -> list[Point]:
    """Summarise the repeats of each point; marked runs are counted, and left out of the figures."""
    result = []
    for described, repeats in _by_point(runs):
        good = [run for run in repeats if not run.marked]
        figures = _figures([(run.bytes, run.makespan) for run in good])
        result.append(Point(**described, **figures))
    return result


def operation_points(runs: Iterable[Run]) -> list[OperationPoint]:
    """Summarise the writes and the reads of each point in the same way."""
    result = []
    for described, repeats in _by_point(runs):
        moved = [(run, data_operations(run.ranks)) for run in repeats]
        for operation in ("write", "read"):
            if not any(operation in each for _, each in moved):
                continue
            good = [(run, each[operation]) for run, each in moved if not run.marked]
            figures = _figures([volume for _, volume in good])
            if good:
                times = [
                    t.seconds for run, _ in good for t in run.ranks if t.operation == operation
                ]
                names = ("fastest_rank", "q1_rank", "median_rank", "q3_rank", "slowest_rank")
                figures |= dict(zip(names, _five_numbers(times), strict=True))
                figures["mean_rank"] = statistics.fmean(times)
                figures["bytes"] = statistics.median(size for _, (size, _) in good)
            result.append(OperationPoint(**described, operation=operation, **figures))
    return result


def _by_point(runs: Iterable[Run]) -> Iterator[tuple[dict[str, Any], list[Run]]]:
    """Give the fields that describe each point, and its runs."""
    by_point: dict[PointId, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.cell):
        by_point.setdefault(run.cell[:3], []).append(run)
    processes: dict[str, set[int]] = {}
    for phase, ranks, _ in by_point:
        processes.setdefault(phase, set()).add(ranks)
    for (phase, ranks, n), repeats in by_point.items():
        yield (
            {
                "job": phase if len(processes[phase]) == 1 else f"{phase}-{ranks}",
                "phase": phase,
                "processes": ranks,
                "io_nodes": n,
                "runs": len(repeats),
                "marked": sum(bool(run.marked) for run in repeats),
                "hosts": max(len({t.host for t in run.ranks if t.host}) for run in repeats) or None,
            },
            repeats,
        )


def _figures(volumes: Sequence[tuple[int, float]]) -> dict[str, Any]:
    """Return the figures of a point from the bytes and makespans of its runs."""
    if not volumes:
        return {}
    names = ("minimum", "q1", "median", "q3", "maximum")
    bandwidths = _five_numbers([size / makespan / MEGA for size, makespan in volumes])
    median = statistics.median(makespan for _, makespan in volumes)
    return dict(zip(names, bandwidths, strict=True)) | {"makespan": median}


def _five_numbers(values: Sequence[float]) -> tuple[float, ...]:
    """Return the minimum, the quartiles and the maximum."""
    several = len(values) > 1
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if several else [*values] * 3
    return (min(values), *quartiles, max(values))


def operation_curves(points: Iterable[OperationPoint]) -> list[object]:
    """Return the curves of jobs' writes and of their reads: medians in MB/s, volumes in MB."""
    result: dict[tuple[str, str], dict[str, Any]] = {}
    for point in points:
        if point.median is None or point.bytes is None:
            continue
        one = result.setdefault(
            (point.job, point.operation),
            {
                "id": point.job,
                "operation": point.operation,
                "curve": {},
                "volume": point.bytes / MEGA,
            },
        )
        one["curve"][str(point.io_nodes)] = point.median
    return list(result.values())


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
        phase, ranks = by_name[point.phase], point.processes
        volumes: Counter[tuple[str, str, str, int]] = Counter()
        for pattern in phase.patterns:
            if pattern.operation in DATA:
                layout = "shared" if pattern.number_of_files == "shared" else "file-per-process"
                key = (pattern.operation, layout, pattern.spatiality, pattern.request_size)
                size = ranks * pattern.requests(ranks) * pattern.request_size
                volumes[key] += phase.repetitions * size
        names = ("operation", "layout", "spatiality", "request_size")
        result[point.job] = [
            dict(zip(names, key, strict=True)) | {"volume": volume}
            for key, volume in volumes.items()
        ]
    return result
