"""The examples of paper io-sets, Section II: two jobs, solved exactly.

*large* computes for one unit of time and does I/O for one, *small* computes for one and does I/O
for 0.01. What counts is how long one iteration takes in the long run.
"""

from collections.abc import Iterator

import numpy as np

from penstock import registry
from penstock.campaign.cells import Cell
from penstock.campaign.journal import Value
from penstock.model import Job, JobId
from penstock.policies.base import ByArrival, Sharing
from penstock.report.findings import Claim
from penstock.sim.engine import simulate
from penstock.sim.workload import Workload
from penstock.studies.io_sets.gains import claim, near
from penstock.studies.table import Table, row

SCENARIO = "section-2"
TWO_LARGE, LARGE_AND_SMALL = 1.0, 2.0
TO_LARGE, TO_SMALL = "most to large", "most to small"
LARGE, SMALL = (1.0, 1.0), (1.0, 0.01)
ITERATIONS = 2000
MOST = 100.0
"""How many times the share of the other "most of the bandwidth" is; the paper prints no number."""


class Weighted(ByArrival):
    """Both jobs transfer at any time, with these weights."""

    def __init__(self, *weights: float) -> None:
        self.weights = weights

    def group(self, job: Job) -> JobId:
        """Return the job itself: no job waits."""
        return job.id

    def weight(self, job: Job) -> float:
        """Return the weight by order of submission."""
        return self.weights[job.serial]


def run_cell(cell: Cell) -> list[dict[str, Value]]:
    """Return both jobs' iteration times under each policy of Figures 1 and 2."""
    pair = (LARGE, LARGE) if cell.x == TWO_LARGE else (LARGE, SMALL)
    policies: dict[str, Sharing] = {
        name: registry.sharing(name) for name in ("fair-share", "exclusive-fcfs")
    }
    if cell.x == LARGE_AND_SMALL:
        policies |= {TO_LARGE: Weighted(MOST, 1.0), TO_SMALL: Weighted(1.0, MOST)}
    times = {name: _iteration_times(pair, policy) for name, policy in policies.items()}
    return [
        row(cell, name, first_iteration_time=first, second_iteration_time=second)
        for name, (first, second) in times.items()
    ]


def _iteration_times(
    pair: tuple[tuple[float, float], tuple[float, float]], policy: Sharing
) -> tuple[float, float]:
    compute, io = (np.repeat(lengths, ITERATIONS) for lengths in zip(*pair, strict=True))
    offsets = [0, ITERATIONS, 2 * ITERATIONS]
    run = simulate(Workload(compute=compute, io=io, offsets=offsets, release=[0.0, 0.0]), policy)
    ends = run.end[:ITERATIONS], run.end[ITERATIONS:]
    # The middle of the time in which both jobs are there.
    until = min(end[-1] for end in ends)
    middle = [end[(end > until / 4) & (end < until / 2)] for end in ends]
    first, second = (float(end[-1] - end[0]) / (len(end) - 1) for end in middle)
    return first, second


def claims(table: Table) -> Iterator[Claim]:
    """Return the claims of Section II."""

    def times(x: float, policy: str) -> tuple[float, float]:
        row = table.rows(SCENARIO, x, policy)[0]
        return float(row["first_iteration_time"] or 0), float(row["second_iteration_time"] or 0)

    shared, exclusive = (times(TWO_LARGE, p)[0] for p in ("fair-share", "exclusive-fcfs"))
    both_share = times(LARGE_AND_SMALL, "fair-share")
    both_wait = times(LARGE_AND_SMALL, "exclusive-fcfs")
    to_large, to_small = (times(LARGE_AND_SMALL, name) for name in (TO_LARGE, TO_SMALL))
    cost_of_sharing = both_share[0] / both_wait[0] - 1
    cost_to_large = to_small[0] / to_large[0] - 1
    cost_to_small = to_large[1] / to_small[1] - 1
    yield claim(
        "fig-1-two-large-jobs-fair-share-takes",
        f"{shared:.3f} and {exclusive:.3f}",
        abs(shared - 3) < 0.01 and abs(exclusive - 2) < 0.01,
    )
    yield claim(
        "fig-1-large-and-small-small-takes-two",
        f"{both_wait[1]:.3f} and {both_share[1]:.3f}; large {100 * cost_of_sharing:+.2f}%",
        abs(both_wait[1] - 2) < 0.05 and abs(both_share[1] - 1) < 0.05 and cost_of_sharing < 0.01,
    )
    yield claim(
        "fig-2-giving-small-more",
        f"{round(100 * cost_to_large, 2) + 0.0:.2f}%",
        cost_to_large < 0.0025,
        most=MOST,
    )
    yield claim("fig-2-giving-large-most", f"{100 * cost_to_small:.0f}%", near(cost_to_small, 0.28))
