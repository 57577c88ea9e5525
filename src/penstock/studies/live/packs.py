"""The list orders of paper packs on real processes (Section 6.1, Table 1), against the simulator.

Five applications that do I/O for 24% of their time, one at a time, in the order that a policy says;
time is divided by a hundred. The jobs announce how long each phase will be and how much work they
have, which four of the orders need.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from penstock import registry
from penstock.campaign.cells import Cell, Results, every
from penstock.campaign.journal import Row, Value
from penstock.campaign.sizes import Size
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

SCENARIO = "table-1-live"
TIME = 100.0
PARTS: Mapping[Size, float] = {"quick": 0.02, "fast": 0.1, "full": 1.0}
"""Part of Table 1's iterations."""
APART = 0.01
"""Seconds between the starts of two jobs, not the paper's 0. With all at once, who of two that are
alike comes first is a matter of luck, and lowest-id and shortest-remaining never forget it."""
FARTHEST, MEAN = 0.15, 0.05
"""The paper's largest and mean difference between machine and simulator."""
JITTER, DRAWS = 0.01, 20
"""Phases of a real machine vary: simulations in which they do, by this part, show what it means."""
LONGEST = 4.0
"""Times a job's work within which all must have ended."""


class Spread(NamedTuple):
    """A figure of a simulation, and its range in those whose phases vary."""

    simulated: float
    low: float
    high: float


def workload(*, part: float = 1.0, apart: float = APART) -> Workload:
    """Return the applications of Table 1, for a part of their iterations."""
    counts = [round(part * iterations) for _, _, iterations in TABLE_1]
    return Workload(
        ids=[f"application-{k}" for k in range(1, len(TABLE_1) + 1)],
        compute=np.repeat([compute / TIME for compute, _, _ in TABLE_1], counts),
        io=np.repeat([io / TIME for _, io, _ in TABLE_1], counts),
        offsets=np.concatenate(([0], np.cumsum(counts))),
        release=np.arange(len(TABLE_1)) * apart,
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


def run_cell(cell: Cell, *, part: float) -> list[dict[str, Value]]:
    """Run the applications in one order, and simulate it."""
    order = ORDERS[int(cell.x)]
    base: dict[str, Value] = {"scenario": cell.scenario, "x": cell.x, "policy": order}
    jobs = workload(part=part)
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
    return {"makespan": run.makespan} | by_job


def findings(results: Results) -> Findings:
    """Return how far the simulator is off."""
    rows, jobs = list(results.rows), len(TABLE_1)
    return findings_of(
        "live-packs", claims=claims(rows), figures=[_figure(rows)], apart=1000 * APART, jobs=jobs
    )


def claims(rows: list[Row]) -> list[Claim]:
    """Return the paper's claims on its simulator."""
    off = {_key(row): _number(row, "live") / _number(row, "simulated") - 1 for row in rows}
    worst = max(rows, key=lambda row: abs(off[_key(row)]))
    spread = f"{_number(worst, 'low'):.2f} to {_number(worst, 'high'):.2f}"
    # Of the ratios' distances from one, as the paper must mean: their own would cancel out.
    mean = math.exp(np.mean([abs(math.log1p(part)) for part in off.values()])) - 1
    opened = sum(int(row["fail_opens"] or 0) for row in rows)
    return [
        claim(
            "largest-difference-stretch",
            f"{100 * off[_key(worst)]:+.1f}% ({worst['what']} under {worst['policy']})",
            abs(off[_key(worst)]) <= FARTHEST,
            farthest=100 * FARTHEST,
            number=_number(worst, "live"),
            number_2=_number(worst, "simulated"),
            spread=spread,
            draws=DRAWS,
            jitter=100 * JITTER,
            apart=1000 * APART,
        ),
        claim(
            "geometric-mean",
            f"{100 * mean:.1f}% over {len(off)} stretches and makespans",
            mean < MEAN,
            mean=100 * MEAN,
        ),
        claim("no-gate-opened", f"{opened} times", opened == 0),
    ]


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
    version=2,
    cells=lambda _: every(SCENARIO, range(len(ORDERS)), 1),
    run_cell=lambda size, _: partial(run_cell, part=PARTS[size]),
    findings=findings,
    alone=True,
)
