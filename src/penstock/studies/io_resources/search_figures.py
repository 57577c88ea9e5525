"""Figures of our search: what it gains, what it costs, and the front between the metrics."""

from collections.abc import Mapping

import numpy as np

from penstock.campaign.journal import CellId
from penstock.policies._support.trials import METRICS
from penstock.report.findings import Cloud, Curves, Figure, Scatter, Series
from penstock.studies.io_resources.drawing import LOAD, PAPER, figure, sets
from penstock.studies.io_resources.ours import APPROXIMATE, COLUMNS, SEARCH, gains, pairs, searched
from penstock.studies.io_resources.scenarios import MCKP, PLACERS, STEPS, pair
from penstock.studies.io_resources.terms import BANDWIDTH, IDLE, NAMES, SLOWDOWN, mean
from penstock.studies.panels import curves
from penstock.studies.table import Table, curve

FAR = 2.0
"""How many times the slowdown of all others a point may have before it would squeeze them."""


def figures(table: Table, seconds: Mapping[CellId, float]) -> list[Figure]:
    """Return the figures of the search; `seconds` are those of each cell."""
    return [_search(table), _cost(table, seconds), _front(table)]


def _better_by(metric: str) -> str:
    return f"{NAMES[COLUMNS[metric]]}, better by (%)"


def _search(table: Table) -> Figure:
    def panel(metric: str) -> Curves:
        column = COLUMNS[metric]
        series = [
            curve(label, gains(table, SEARCH, searched(metric), name), scale=100)
            for label, name in (("search", column), ("search, noise", f"noisy_{column}"))
        ]
        if metric == METRICS[0]:
            guess = gains(table, SEARCH, APPROXIMATE, column)
            values = [100 * estimate.value for estimate in guess.values()]
            series.append(Series(label="classes only", x=list(guess), y=values))
        lines = {"best pair": 0.0}
        return curves(f"set to {metric}", LOAD, _better_by(metric), series, lines=lines)

    panels = [panel(metric) for metric in METRICS]
    return figure("search", panels, sets=sets(table, SEARCH), pairs=len(pairs(table, SEARCH)))


def _cost(table: Table, seconds: Mapping[CellId, float]) -> Figure:
    loads = table.points(SEARCH)
    evaluations = [
        int(row["evaluations"] or 0)
        for metric in METRICS
        for x in loads
        for row in table.rows(SEARCH, x, searched(metric))
    ]
    cells = [value for (name, _, _), value in seconds.items() if name == SEARCH]
    # Four searches per cell, one of them with approximated curves.
    each = float(np.median(cells)) / (len(METRICS) + 1)
    first = table.rows(SEARCH, loads[0], searched(METRICS[0]))[0]
    steps = [step for step in STEPS if f"after_{step}" in first]

    def gained(metric: str, step: int) -> float:
        sign = -1 if COLUMNS[metric] == BANDWIDTH else 1
        after = [mean(table, SEARCH, x, searched(metric), f"after_{step}") for x in loads]
        return 100 * sign * float(np.mean([1 - value for value in after]))

    panels = [
        curves(
            f"set to {metric}",
            "simulations",
            _better_by(metric),
            [Series(label="search", x=steps, y=[gained(metric, step) for step in steps])],
            lines={"set's best pair": 0.0},
        )
        for metric in METRICS
    ]
    most = max(evaluations)
    return figure("search-cost", panels, sets=sets(table, SEARCH), evaluations=most, each=each)


def _front(table: Table) -> Figure:
    def point(x: float, policy: str) -> tuple[float, float]:
        row = table.rows(SEARCH, x, policy)[0]
        return 100 * float(row[IDLE] or 0), float(row[SLOWDOWN] or 0)

    def cloud(label: str, points: list[tuple[float, float]]) -> Cloud:
        return Cloud(label=label, x=[p[0] for p in points], y=[p[1] for p in points])

    def panel(x: float) -> tuple[Scatter, str]:
        front = [(100 * p[1], p[0]) for p in _joint_front(table, x)]
        clouds = [
            cloud("search", front),
            *(cloud(n, [point(x, pair(n, placer)) for placer in PLACERS]) for n in PAPER),
        ]
        idle, slowdown = point(x, MCKP)
        far = slowdown > FAR * max(y for one in clouds for y in one.y)
        if not far:
            clouds.append(cloud("mckp", [(idle, slowdown)]))
        scatter = Scatter(
            title=f"one set at load {x:g}",
            x="Machine-IdleTime (%)",
            y="Mean-I/O-SlowDown",
            clouds=clouds,
            log_y=True,
        )
        return scatter, f"{slowdown:.0f} and {idle:.0f}% at load {x:g}" if far else ""

    panels = [panel(x) for x in (0.3, 0.6, 0.9)]
    left_out = ", ".join(text for _, text in panels if text)
    if left_out:
        left_out = (
            " Where mckp is far above all others it is left out: slowdown and idle time "
            f"{left_out}."
        )
    return figure("front", [scatter for scatter, _ in panels], left_out=left_out)


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
