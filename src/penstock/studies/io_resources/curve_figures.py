"""Figures 11 to 13, which turn on the curves, and the one of twenty jobs."""

import numpy as np

from penstock.model.curve import Shape
from penstock.report.findings import Curves, Figure, Series
from penstock.sim.generators.io_resources import mn4_curves, ost_curves
from penstock.studies.io_resources.drawing import (
    IDLE_PART,
    LOAD,
    PAPER,
    figure,
    percentiles,
    sets,
)
from penstock.studies.io_resources.robustness import FIGURE_12, approximate
from penstock.studies.io_resources.scenarios import learnt, pair
from penstock.studies.io_resources.terms import (
    BEST,
    IDLE,
    NAMES,
    NODES,
    OST,
    SLOWDOWN,
    T_CPU,
    TWENTY,
    changes,
)
from penstock.studies.panels import curves, means
from penstock.studies.table import Floats, Table, curve

PART = "bandwidth (part of the peak)"
SHAPES: tuple[Shape, ...] = ("ascent", "descent", "peak", "neutral")


def figures(table: Table) -> list[Figure]:
    """Return Figures 11 to 13 and that of twenty jobs."""
    return [_figure_11(), _figure_12(table), _figure_13(table), _twenty(table)]


def _spread(label: str, counts: tuple[int, ...], parts: Floats) -> Series:
    low, high = np.percentile(parts, [10, 90], axis=0)
    y = parts.mean(axis=0).tolist()
    return Series(label=label, x=counts, y=y, low=low.tolist(), high=high.tolist())


def _figure_11() -> Figure:
    classes = learnt(mn4_curves)
    counts, fine = mn4_curves()[0].counts, np.linspace(1, 8, 29)

    def panel(shape: Shape) -> Curves:
        parts = np.array(
            [c.at(c.counts) / max(c.bandwidths) for c in mn4_curves() if c.shape() == shape]
        )
        regression = classes.polynomials[shape](fine).tolist()
        series = [
            _spread("measured", counts, parts),
            Series(label="polynomial", x=fine.tolist(), y=regression),
        ]
        return curves(f"{shape}: {len(parts)} curves", "I/O nodes", PART, series, bottom=0, top=1.1)

    return figure("figure-11", [panel(shape) for shape in SHAPES])


def _figure_12(table: Table) -> Figure:
    names = dict(zip(FIGURE_12, (T_CPU, BEST, "clairvoyant"), strict=True))
    slowdown = [
        curve(label, changes(table, NODES, SLOWDOWN, approximate(name), name), scale=100)
        for name, label in names.items()
    ]
    idle = [means(table, NODES, approximate(name), IDLE, label) for name, label in names.items()]
    lines = {"the paper's 4%": 4.0}
    panels = [
        curves("Mean-I/O-SlowDown", LOAD, "change to exact curves (%)", slowdown, lines=lines),
        curves("Machine-IdleTime", LOAD, IDLE_PART, idle),
    ]
    return figure("figure-12", panels, sets=sets(table, NODES))


def _synthetic() -> Curves:
    synthetic = ost_curves()
    parts = np.array([one.bandwidths for one in synthetic])
    parts /= parts.max(axis=1, keepdims=True)
    series = [_spread("synthetic", synthetic[0].counts, parts)]
    title = f"{len(synthetic)} synthetic curves"
    return curves(title, "storage targets", PART, series, bottom=0, top=1.1)


def _both_metrics(table: Table, scenario: str) -> list[Curves]:
    """Return the slowdown and the idle time of the paper's allocators over the load."""
    labels = {SLOWDOWN: "Mean-I/O-SlowDown", IDLE: IDLE_PART}
    return [
        curves(
            NAMES[metric],
            LOAD,
            label,
            [percentiles(table, scenario, pair(name), metric, name) for name in PAPER],
            log_y=metric == SLOWDOWN,
        )
        for metric, label in labels.items()
    ]


def _figure_13(table: Table) -> Figure:
    panels = [_synthetic(), *_both_metrics(table, OST)]
    return figure("figure-13", panels, sets=sets(table, OST))


def _twenty(table: Table) -> Figure:
    return figure("twenty-jobs", _both_metrics(table, TWENTY), sets=sets(table, TWENTY, 20))
