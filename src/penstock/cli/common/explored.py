"""The runs that 'penstock explore' keeps in its results file, and what it tells of them."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import msgspec

from penstock.campaign.journal import Entry, Journal
from penstock.cli.common.output import emit_json, emit_table
from penstock.files import replacing
from penstock.live.measure import explorer
from penstock.live.measure.access_patterns import Patterns
from penstock.live.measure.convergence import Point
from penstock.live.measure.explorer import Cell, Run, Timed
from penstock.report.tables import rows_csv

MOST_EVER = 10_000
"""Repeats of a point that are looked for."""


class Kept:
    """The runs of a results file."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def add(self, run: Run) -> None:
        """Keep a run, whatever happens next."""
        self._journal.add(_entry(run))

    def __contains__(self, cell: Cell) -> bool:
        """Say whether a cell has been run."""
        return _id(cell) in self._journal.entries

    def runs(self, points: Sequence[Point], most: int = MOST_EVER) -> list[Run]:
        """Return the runs of these points, so many of each at most, in their order."""
        found = []
        for point in sorted(points):
            for repeat in range(most):
                cell = Cell(*point, repeat)
                if cell in self:
                    found.append(_run(cell, self._journal.entries[_id(cell)]))
        return found


def _id(cell: Cell) -> tuple[str, float, int]:
    return (f"{cell.phase} by {cell.processes}", float(cell.io_nodes), cell.repeat)


def _entry(run: Run) -> Entry:
    """Return a run as the journal keeps it: itself, then its ranks."""
    own = {k: v for k, v in asdict(run).items() if k not in {"cell", "ranks"}}
    rows = [own, *(asdict(timed) for timed in run.ranks)]
    return Entry(cell=_id(run.cell), seconds=run.makespan, rows=rows)


def _run(cell: Cell, entry: Entry) -> Run:
    own: dict[str, Any] = dict(entry.rows[0])
    ranks = [msgspec.convert(row, Timed) for row in entry.rows[1:]]
    return Run(cell=cell, ranks=ranks, **own)


def report(
    told: Patterns, runs: list[Run], out: Path, emulate: str | None, *, as_json: bool
) -> int:
    """Write the results and tell them; return the exit status."""
    found = explorer.points(runs)
    jobs = explorer.curves(found, runs, told.phases)
    parts = explorer.parts(found, told.phases)
    result = {"unit": "MB/s", "emulated": emulate, "jobs": jobs, "patterns": parts}
    about = {"emulated": emulate or ""}
    summary = [msgspec.structs.asdict(point) | about for point in found]
    ranks = [run.cell._asdict() | asdict(timed) for run in runs for timed in run.ranks]
    indented = msgspec.json.format(msgspec.json.encode(result), indent=2)
    for name, text in (
        ("curves.json", indented.decode() + "\n"),
        ("summary.csv", rows_csv(summary)),
        ("ranks.csv", rows_csv(ranks)),
    ):
        with replacing(out / name) as partial:
            partial.write_text(text, encoding="utf-8")
    marked = [run for run in runs if run.marked]
    if as_json:
        told_marked = [run.cell._asdict() | {"why": run.marked} for run in marked]
        points = [msgspec.structs.asdict(point) for point in found]
        emit_json(result | {"points": points, "marked": told_marked, "out": str(out)})
    else:
        _show(found, out, emulate)
    for run in marked[:3]:
        where = f"{run.cell.phase} over {run.cell.io_nodes} I/O nodes, run {run.cell.repeat}"
        click.echo(f"penstock: marked: {where}: {run.marked}", err=True)
    if marked:
        click.echo(f"penstock: {len(marked)} of {len(runs)} runs are marked, left out", err=True)
    return 1 if marked else 0


def _show(found: list[explorer.Point], out: Path, emulate: str | None) -> None:
    rows = [
        (
            point.job,
            str(point.processes),
            str(point.io_nodes) if point.io_nodes else "direct",
            *("-" if v is None else f"{v:,.1f}" for v in (point.median, point.q1, point.q3)),
            f"{point.runs - point.marked} of {point.runs}",
        )
        for point in found
    ]
    # Not as the table's title, which would be broken at the table's width.
    beneath = f", on an emulated file system ({emulate})" if emulate else ""
    click.echo(f"median bandwidth and quartiles over repeats{beneath}\n")
    columns = ("phase", "processes", "I/O nodes", "MB/s", "Q1", "Q3", "runs")
    emit_table(columns, rows)
    click.echo(f"\nwhat to do with it: penstock allocate {out / 'curves.json'} --io-nodes N")
