"""Figures of our search: what it gains, what it costs, and the front between the metrics."""

from collections.abc import Mapping

import numpy as np

from penstock.campaign.journal import CellId
from penstock.policies._support.trials import METRICS
from penstock.report.findings import Cloud, Curves, Figure, Reference, Scatter, Series
from penstock.studies.io_resources.drawing import CURVES, LOAD, PAPER, sets
from penstock.studies.io_resources.ours import APPROXIMATE, COLUMNS, SEARCH, gains, pairs, searched
from penstock.studies.io_resources.scenarios import MCKP, PLACERS, STEPS, pair
from penstock.studies.io_resources.terms import BANDWIDTH, IDLE, NAMES, SLOWDOWN, mean
from penstock.studies.table import Table, curve

FAR = 2.0
"""How many times all else's slowdown a point may have before it would squeeze the others."""


def figures(table: Table, seconds: Mapping[CellId, float]) -> list[Figure]:
    """Return the figures of the search; `seconds` are those of each cell."""
    return [_search(table), _cost(table, seconds), _front(table)]


def _search(table: Table) -> Figure:
    def panel(metric: str) -> Curves:
        column = COLUMNS[metric]
        curves = [
            curve("search", gains(table, SEARCH, searched(metric), column), scale=100),
            curve(
                "search, noise",
                gains(table, SEARCH, searched(metric), f"noisy_{column}"),
                scale=100,
            ),
        ]
        if metric == METRICS[0]:
            guess = gains(table, SEARCH, APPROXIMATE, column)
            values = [100 * estimate.value for estimate in guess.values()]
            curves.append(Series(label="classes only", x=list(guess), y=values))
        return Curves(
            title=f"set to {metric}",
            x=LOAD,
            y=f"{NAMES[column]}, better by (%)",
            series=curves,
            references=[Reference(y=0.0, label="best pair")],
        )

    return Figure(
        name="search",
        title="Ours: search against the best of the papers' pairs at each load",
        caption=f"{sets(table, SEARCH)}, {CURVES}. The best pair is chosen load by load, of "
        f"{len(pairs(table, SEARCH))}. 'noise': each phase varies by 10%, which the judge did not "
        "know; 'classes only': it was told approximated curves. Areas are 95% bootstrap intervals.",
        panels=[panel(metric) for metric in METRICS],
    )


def _cost(table: Table, seconds: Mapping[CellId, float]) -> Figure:
    loads = table.points(SEARCH)
    evaluations = [
        int(row["evaluations"] or 0)
        for metric in METRICS
        for x in loads
        for row in table.rows(SEARCH, x, searched(metric))
    ]
    taken = [value for (name, _, _), value in seconds.items() if name == SEARCH]
    # Four searches a cell, one of them with approximated curves.
    each = float(np.median(taken)) / (len(METRICS) + 1)
    first = table.rows(SEARCH, loads[0], searched(METRICS[0]))[0]
    steps = [step for step in STEPS if f"after_{step}" in first]

    def panel(metric: str) -> Curves:
        sign = -1 if COLUMNS[metric] == BANDWIDTH else 1
        gained = [
            100
            * sign
            * float(
                np.mean([1 - mean(table, SEARCH, x, searched(metric), f"after_{s}") for x in loads])
            )
            for s in steps
        ]
        return Curves(
            title=f"set to {metric}",
            x="simulations",
            y=f"{NAMES[COLUMNS[metric]]}, better by (%)",
            series=[Series(label="search", x=steps, y=gained)],
            references=[Reference(y=0.0, label="set's best pair")],
        )

    return Figure(
        name="search-cost",
        title="Ours: what a search finds after how many simulations",
        caption=f"{sets(table, SEARCH)}, {CURVES}. Against the best pair of each single set, mean "
        f"over all loads. A search made at most {max(evaluations)} simulations and took "
        f"{each:.1f} s on one core: the median time of a cell over its searches, all pairs "
        "included, on this machine and beside whatever else it ran.",
        panels=[panel(metric) for metric in METRICS],
    )


def _front(table: Table) -> Figure:
    rows = {x: table.rows(SEARCH, x, MCKP)[0] for x in (0.3, 0.6, 0.9)}
    mckp = {x: (float(row[IDLE] or 0), float(row[SLOWDOWN] or 0)) for x, row in rows.items()}
    left_out: list[str] = []

    def panel(x: float) -> Scatter:
        front = _joint_front(table, x)
        clouds = [
            Cloud(
                label="search",
                x=[100 * point[1] for point in front],
                y=[point[0] for point in front],
            )
        ]
        for name in PAPER:
            rows = [table.rows(SEARCH, x, pair(name, placer))[0] for placer in PLACERS]
            clouds.append(
                Cloud(
                    label=name,
                    x=[100 * float(row[IDLE] or 0) for row in rows],
                    y=[float(row[SLOWDOWN] or 0) for row in rows],
                )
            )
        idle, slowdown = mckp[x]
        if slowdown <= FAR * max(y for cloud in clouds for y in cloud.y):
            clouds.append(Cloud(label="mckp", x=[100 * idle], y=[slowdown]))
        else:
            left_out.append(f"{slowdown:.0f} and {idle:.0%} at load {x:g}")
        return Scatter(
            title=f"one set at load {x:g}",
            x="Machine-IdleTime (%)",
            y="Mean-I/O-SlowDown",
            clouds=clouds,
            log_y=True,
        )

    panels = [panel(x) for x in mckp]
    return Figure(
        name="front",
        title="Ours: the front between the metrics",
        caption="Simulated; one synthetic set of 40 jobs a panel. Diamonds: what three searches "
        "saw that nothing else they saw beats in mean slowdown, idle time and bandwidth at once. "
        "Others: the papers' allocators, each with three placements, and mckp with its own."
        + (
            " Where mckp is far above all else it is left out: slowdown and idle time "
            f"{', '.join(left_out)}."
            if left_out
            else ""
        ),
        panels=panels,
    )


def _joint_front(table: Table, x: float) -> list[tuple[float, ...]]:
    """Return the front of all searches on the first set of a load."""
    points = {
        tuple(float(value) for value in text.split(":"))
        for metric in METRICS
        for text in str(table.rows(SEARCH, x, searched(metric))[0]["front"]).split()
    }
    costs = {point: (point[0], point[1], -point[2]) for point in points}
    return sorted(
        point
        for point, cost in costs.items()
        if not any(
            other != cost and all(a <= b for a, b in zip(other, cost, strict=True))
            for other in costs.values()
        )
    )
