"""The list orders of paper packs on real processes (Section 6.1, Table 1), against the simulator.

Five applications that do I/O for 24% of their time, one at a time, in the order that a policy says;
time is divided by ten (by a hundred in the quick size). The jobs announce how long each phase will
be and how much work they have, which four of the orders need.

Their periods are multiples of each other, so that who is first once may be first for ever. Started
at once, as in the paper, phases that vary by a thousandth move stretches of lowest-id and
shortest-remaining by 38%, and no run can agree with its simulation but by luck. There are therefore
0.3 s of the paper's time between two starts: no stretch then moves by more than 8% as long as
phases vary by at most 0.4% (with 1 s, which coincides with ends of phases, they move by 25%). At 1%
shortest-remaining's move by 26% again, which is why time is divided by ten and no more: the
milliseconds in which a turn changes hands are then a thousandth of a period.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from penstock import registry
from penstock.campaign.cells import Cell, Results, every
from penstock.campaign.journal import Row, Value
from penstock.campaign.sizes import QUICK, Size
from penstock.report.findings import Claim, Figure, Findings
from penstock.sim.engine import simulate
from penstock.sim.generators.packs import TABLE_1
from penstock.sim.run import Run
from penstock.sim.workload import Floats, Workload
from penstock.studies.live.testbed import measured
from penstock.studies.packs.scenarios import ORDERS
from penstock.studies.panels import bars
from penstock.studies.study import Study
from penstock.studies.texts import captions_of, claims_of, findings_of

claim = claims_of("live-packs")
figure = captions_of("live-packs")

SCENARIO, MAKESPAN = "table-1-live", "makespan"
TIMES: Mapping[Size, float] = {"quick": 100.0, "fast": 10.0, "full": 10.0}
"""What time is divided by."""
PARTS: Mapping[Size, float] = {"quick": 0.02, "fast": 0.04, "full": 0.2}
"""Part of Table 1's iterations."""
QUICK_ORDERS = (ORDERS[0], "longest-io", "shortest-remaining", "worst-stretch")
"""Those of the quick size: by arrival, by announced lengths, by announced work, by the past."""
APART = 0.3
"""Seconds of the paper's time between the starts of two jobs; in the paper all start at once."""
FARTHEST, MEAN = 0.15, 0.05
"""The paper's largest and mean difference between machine and simulator."""
JITTER, DRAWS = 0.004, 20
"""Phases of a real machine vary: simulations in which they do, by this part, show what it means."""
ALIKE = 0.05
"""Stretches of two applications that differ by less are not in an order that could be kept."""
LONGEST = 4.0
"""Times a job's work within which all must have ended."""


class Spread(NamedTuple):
    """A figure of a simulation, and its range in those whose phases vary."""

    simulated: float
    low: float
    high: float


def orders(size: Size) -> Sequence[str]:
    """Return the list orders of a size."""
    return QUICK_ORDERS if size == QUICK else ORDERS


def workload(*, part: float = 1.0, time: float = 10.0, apart: float = APART) -> Workload:
    """Return the applications of Table 1, for a part of their iterations, with time divided."""
    counts = [round(part * iterations) for _, _, iterations in TABLE_1]
    return Workload(
        ids=[f"application-{k}" for k in range(1, len(TABLE_1) + 1)],
        compute=np.repeat([compute / time for compute, _, _ in TABLE_1], counts),
        io=np.repeat([io / time for _, io, _ in TABLE_1], counts),
        offsets=np.concatenate(([0], np.cumsum(counts))),
        release=np.arange(len(TABLE_1)) * apart / time,
    )


def spread(order: str, jobs: Workload, *, jitter: float = JITTER) -> dict[str, Spread]:
    """Return what a simulation says of each figure, and the range when phases vary by a part."""
    simulated = _figures(simulate(jobs, registry.sharing(order)))
    varied = [
        _figures(simulate(_jittered(jobs, draw, jitter), registry.sharing(order)))
        for draw in range(DRAWS)
    ]
    return {
        what: Spread(value, min(v[what] for v in varied), max(v[what] for v in varied))
        for what, value in simulated.items()
    }


def _jittered(jobs: Workload, draw: int, jitter: float) -> Workload:
    rng = np.random.default_rng(draw)

    def varied(lengths: Floats) -> Floats:
        varied: Floats = lengths * (1 + rng.uniform(-jitter, jitter, len(lengths)))
        return varied

    return Workload(
        ids=jobs.ids,
        compute=varied(jobs.compute),
        io=varied(jobs.io),
        offsets=jobs.offsets,
        release=jobs.release,
    )


def run_cell(cell: Cell, *, part: float, time: float) -> list[dict[str, Value]]:
    """Run the applications in one order, and simulate it."""
    order = ORDERS[int(cell.x)]
    base: dict[str, Value] = {"scenario": cell.scenario, "x": cell.x, "policy": order}
    jobs = workload(part=part, time=time)
    until = LONGEST * float(jobs.work.max())
    outcome = measured(jobs, policy=order, mode="enforce", until=until, in_order=True)
    simulated = spread(order, jobs)
    base |= {"fail_opens": outcome.fail_opens}
    return [
        base | {"what": what, "live": ours, **simulated[what]._asdict()}
        for what, ours in _figures(outcome.run).items()
    ]


def _figures(run: Run) -> dict[str, float]:
    stretch = (run.finish - run.start) / run.workload.work
    by_job = {run.workload.id(j): float(value) for j, value in enumerate(stretch)}
    return {MAKESPAN: run.makespan} | by_job


def findings(results: Results) -> Findings:
    """Return how far the simulator is off."""
    rows, jobs = list(results.rows), len(TABLE_1)
    return findings_of(
        "live-packs",
        claims=claims(rows),
        figures=[_figure(rows)],
        apart=APART,
        time=TIMES[results.campaign.size],
        jobs=jobs,
    )


def claims(rows: list[Row]) -> list[Claim]:
    """Return the paper's claims on its simulator."""
    off = {_key(row): _number(row, "live") / _number(row, "simulated") - 1 for row in rows}
    worst = max(rows, key=lambda row: abs(off[_key(row)]))
    # Of the ratios' distances from one, as the paper must mean: their own would cancel out.
    mean = math.exp(np.mean([abs(math.log1p(part)) for part in off.values()])) - 1
    pairs, swapped = _swapped(rows)
    opened = sum(int(row["fail_opens"] or 0) for row in rows)
    return [
        claim(
            "largest-difference-stretch",
            f"{100 * off[_key(worst)]:+.1f}% ({worst['what']} under {worst['policy']})",
            abs(off[_key(worst)]) <= FARTHEST,
            farthest=100 * FARTHEST,
            reason=_reason(worst),
            apart_by=APART,
        ),
        claim(
            "geometric-mean",
            f"{100 * mean:.1f}% over {len(off)} stretches and makespans",
            mean < MEAN,
            mean=100 * MEAN,
        ),
        claim(
            "order-between-applications",
            f"{pairs - len(swapped)} of {pairs} pairs"
            + (f"; not {'; '.join(swapped)}" if swapped else ""),
            not swapped,
            alike=100 * ALIKE,
        ),
        claim("no-gate-opened", f"{opened} times", opened == 0),
    ]


def _reason(row: Row) -> str:
    """Say whether phases that vary would explain a difference."""
    live, simulated, low, high = (_number(row, n) for n in ("live", "simulated", "low", "high"))
    inside = "inside" if low <= live <= high else "outside"
    return (
        f"There, live is {live:.2f} and simulated {simulated:.2f}; in {DRAWS} simulations whose "
        f"phases vary by {100 * JITTER:g}% it is {low:.2f} to {high:.2f}, so that live is {inside} "
        "of what such a variation explains."
    )


def _swapped(rows: list[Row]) -> tuple[int, list[str]]:
    """Return how many pairs the simulation puts in an order, and those that live has in another.

    Pairs of applications by their stretch under each list order, and of list orders by makespan.
    """
    groups: dict[str, dict[str, Row]] = {}
    for row in rows:
        policy, what = _key(row)
        group, name = (what, policy) if what == MAKESPAN else (policy, what)
        groups.setdefault(group, {})[name] = row
    pairs, swapped = 0, []
    for group, members in groups.items():
        for one, other in combinations(members, 2):
            live, simulated = (
                math.log(_number(members[one], how) / _number(members[other], how))
                for how in ("live", "simulated")
            )
            if abs(simulated) > math.log1p(ALIKE):
                pairs += 1
                if live * simulated <= 0:
                    swapped.append(f"{one} and {other} ({group})")
    return pairs, swapped


def _key(row: Row) -> tuple[str, str]:
    return str(row["policy"]), str(row["what"])


def _number(row: Row, name: str) -> float:
    return float(row[name] or math.nan)


def _figure(rows: list[Row]) -> Figure:
    orders = list(dict.fromkeys(str(row["policy"]) for row in rows))
    figures = dict.fromkeys(str(row["what"]) for row in rows)
    over = {_key(row): float(row["live"] or 0) / float(row["simulated"] or 1) for row in rows}
    heights = {what: [over[order, what] for order in orders] for what in figures}
    title, lines = "Live over simulated (1: the same)", {"the same": 1.0}
    panel = bars(title, orders, heights, y="ratio", lines=lines, key=True)
    return figure("live-over-simulated", [panel])


STUDY = Study(
    name="live-packs",
    title="List orders on real processes (Carretero et al., ICS 2020): live against simulated",
    version=3,
    cells=lambda size: every(SCENARIO, [ORDERS.index(one) for one in orders(size)], 1),
    run_cell=lambda size, _: partial(run_cell, part=PARTS[size], time=TIMES[size]),
    findings=findings,
    alone=True,
)
