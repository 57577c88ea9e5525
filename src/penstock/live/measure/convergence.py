"""Repeats measurements until their mean is known (paper write-models, III-D, Formula 2).

A round measures every point once, in a random order; the next round repeats the points that have
not converged. So the repeats of a point meet different times, not one moment several times.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.learn.convergence import Convergence
from penstock.live.measure.explorer import Cell, Run

Point = tuple[str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergenceRounds:
    """The points to repeat, the rule of convergence, and the maximum number of repeats."""

    points: Sequence[Point]
    rule: Convergence
    max_repeats: int
    seed: int

    def pending(self, runs: Iterable[Run]) -> list[Point]:
        """Return the points that have not converged; marked runs do not count."""
        times: dict[Point, list[float]] = {point: [] for point in self.points}
        for run in runs:
            if not run.marked and run.cell[:3] in times:
                times[run.cell[:3]].append(run.makespan)
        return [point for point in self.points if not self.rule.reached(times[point])]

    def next_round(self, runs: Sequence[Run]) -> list[Cell]:
        """Return the next cells; none once all points have converged or are at the maximum."""
        repeats: dict[Point, int] = dict.fromkeys(self.points, 0)
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
