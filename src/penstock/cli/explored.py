"""The runs that 'penstock explore' keeps in its results file."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from penstock.live.explorer import Cell, Run, Timed
from penstock.live.repeating import Point
from penstock.studies.journal import Entry, Journal

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
