"""Repeats what was explored until its mean is known (paper write-models, III-D, Formula 2).

Rounds: every cell once, in a random order, and then again those that have not converged, so that
repeats of a cell meet different times, not one moment several times.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.learn.convergence import Convergence
from penstock.live.measure.explorer import Cell, Run

Point = tuple[str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeating:
    """What is to be repeated, by which rule, and how often at most."""

    points: Sequence[Point]
    rule: Convergence
    most: int
    seed: int

    def pending(self, runs: Iterable[Run]) -> list[Point]:
        """Return what has not converged; runs that are marked say nothing."""
        times: dict[Point, list[float]] = {point: [] for point in self.points}
        for run in runs:
            if not run.marked and run.cell[:3] in times:
                times[run.cell[:3]].append(run.makespan)
        return [point for point in self.points if not self.rule.reached(times[point])]

    def next_round(self, runs: Sequence[Run]) -> list[Cell]:
        """Return what to run next; nothing when all have converged or were run often enough."""
        done: dict[Point, int] = dict.fromkeys(self.points, 0)
        for run in runs:
            if run.cell[:3] in done:
                done[run.cell[:3]] = max(done[run.cell[:3]], run.cell.repeat + 1)
        again = [(point, done[point]) for point in self.pending(runs) if done[point] < self.most]
        if not again:
            return []
        # Who is behind (after an interruption) catches up first: rounds are rounds.
        first = min(repeat for _, repeat in again)
        found = [Cell(*point, repeat) for point, repeat in again if repeat == first]
        random.Random(f"{self.seed} {first}").shuffle(found)
        return found
