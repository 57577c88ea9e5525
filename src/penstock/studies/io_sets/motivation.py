"""The examples of paper io-sets, Section II: two jobs, solved exactly.

*large* computes for one unit of time and does I/O for one, *small* computes for one and does I/O
for 0.01. What counts is how long one iteration takes in the long run.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from penstock import registry
from penstock.campaign.cells import Cell
from penstock.campaign.journal import Value
from penstock.model import Job, JobId
from penstock.policies.base import ByArrival, Sharing
from penstock.report.findings import Claim
from penstock.sim.engine import simulate
from penstock.sim.workload import Workload
from penstock.studies.io_sets.gains import claim
from penstock.studies.table import Table, row
from penstock.studies.verdicts import at_limits

SCENARIO, WEIGHED = "section-2", "section-2-weights"
TWO_LARGE, LARGE_AND_SMALL = 1.0, 2.0
TO_LARGE, TO_SMALL = "most to large", "most to small"
LARGE, SMALL = (1.0, 1.0), (1.0, 0.01)
ITERATIONS = 2000
PRINTED = 89.0
"""How many times the share of the other "most of the bandwidth" is: the paper prints that a phase
of small takes 0.9 units of time instead of 0.01, which is a share of 1/90."""
PAPER = 0.28
"""What small loses when large gets most, "roughly"."""
WEIGHTS = (10.0, 30.0, 50.0, 70.0, PRINTED, 95.0, 98.0, 99.0, 100.0, 101.0, 200.0, 1000.0)


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
    """Return both jobs' iteration times by the policies of Figure 1, or at Figure 2's weights."""
    pair = (LARGE, LARGE) if cell.x == TWO_LARGE else (LARGE, SMALL)
    policies: dict[str, Sharing]
    if cell.scenario == WEIGHED:
        policies = {TO_LARGE: Weighted(cell.x, 1.0), TO_SMALL: Weighted(1.0, cell.x)}
    else:
        policies = {name: registry.sharing(name) for name in ("fair-share", "exclusive-fcfs")}
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


def _times(table: Table, scenario: str, x: float, policy: str) -> tuple[float, float]:
    row = table.rows(scenario, x, policy)[0]
    return float(row["first_iteration_time"] or 0), float(row["second_iteration_time"] or 0)


def slowdowns(table: Table, weight: float) -> tuple[float, float]:
    """Return what it costs large that small gets most, and small that large gets most."""
    to_large, to_small = (_times(table, WEIGHED, weight, name) for name in (TO_LARGE, TO_SMALL))
    return to_small[0] / to_large[0] - 1, to_large[1] / to_small[1] - 1


def weight_rows(table: Table) -> Sequence[Sequence[str]]:
    """Return the slowdown of both jobs over the weights."""
    rows = [("weights", "small, when large gets most", "large, when small gets most")]
    for weight in table.points(WEIGHED):
        cost_to_large, cost_to_small = slowdowns(table, weight)
        name = f"{weight:g}:1{' (printed)' if weight == PRINTED else ''}"
        rows.append((name, f"{cost_to_small:.1%}", f"{_percent(cost_to_large)}"))
    return rows


def _percent(value: float) -> str:
    return f"{round(100 * value, 2) + 0.0:.2f}%"


def claims(table: Table) -> Iterator[Claim]:
    """Return the claims of Section II."""
    shared, exclusive = (
        _times(table, SCENARIO, TWO_LARGE, p)[0] for p in ("fair-share", "exclusive-fcfs")
    )
    both_share = _times(table, SCENARIO, LARGE_AND_SMALL, "fair-share")
    both_wait = _times(table, SCENARIO, LARGE_AND_SMALL, "exclusive-fcfs")
    cost_of_sharing = both_share[0] / both_wait[0] - 1
    cost_to_large, cost_to_small = slowdowns(table, PRINTED)
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
        f"{_percent(cost_to_large)}",
        cost_to_large < 0.0025,
        most=PRINTED,
    )
    step = min(w for w in table.points(WEIGHED) if slowdowns(table, w)[1] > 0.9)
    readings = at_limits(lambda limit: abs(cost_to_small / PAPER - 1) <= limit)
    yield claim.over(
        "fig-2-giving-large-most",
        f"{100 * cost_to_small:.0f}%",
        readings,
        most=PRINTED,
        step=step,
        cost=f"{slowdowns(table, step)[1]:.0%}",
    )
