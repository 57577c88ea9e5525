"""Figures 11 to 13, which turn on the curves, and the one of twenty jobs."""

import numpy as np

from penstock.model.curve import Shape
from penstock.report.findings import Curves, Figure, Reference, Series
from penstock.sim.generators.io_resources import mn4_curves, ost_curves
from penstock.studies.io_resources.drawing import (
    CURVES,
    LOAD,
    PAPER,
    means,
    percentiles,
    sets,
)
from penstock.studies.io_resources.robustness import FIGURE_12, approximate
from penstock.studies.io_resources.scenarios import NON_CLAIRVOYANT, learnt, pair
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
from penstock.studies.table import Table, curve


def figures(table: Table) -> list[Figure]:
    """Return Figures 11 to 13 and that of twenty jobs."""
    return [_figure_11(), _figure_12(table), _figure_13(table), _twenty(table)]


def _figure_11() -> Figure:
    classes = learnt(mn4_curves)
    shapes: tuple[Shape, ...] = ("ascent", "descent", "peak", "neutral")

    def panel(shape: Shape) -> Curves:
        parts = np.array(
            [c.at(c.counts) / max(c.bandwidths) for c in mn4_curves() if c.shape() == shape]
        )
        counts, fine = mn4_curves()[0].counts, np.linspace(1, 8, 29)
        low, high = np.percentile(parts, [10, 90], axis=0)
        return Curves(
            title=f"{shape}: {len(parts)} curves",
            x="I/O nodes",
            y="bandwidth (part of the peak)",
            series=[
                Series(
                    label="measured",
                    x=counts,
                    y=parts.mean(axis=0).tolist(),
                    low=low.tolist(),
                    high=high.tolist(),
                ),
                Series(
                    label="polynomial",
                    x=fine.tolist(),
                    y=classes.polynomials[shape](fine).tolist(),
                ),
            ],
            bottom=0,
            top=1.1,
        )

    return Figure(
        name="figure-11",
        title="Figures 1 and 11: the classes of measured curves, and their regression",
        caption="Four classes of the 189 curves measured on MareNostrum 4 (Bez et al. 2020): means "
        "with the 10th to 90th percentile, and the regression of third degree, which is used at "
        "the measured counts, with straight lines between them as on measured curves. Not "
        "simulated: measured.",
        panels=[panel(shape) for shape in shapes],
        source="measured",
    )


def _figure_12(table: Table) -> Figure:
    names = dict(zip(FIGURE_12, (T_CPU, BEST, "clairvoyant"), strict=True))
    return Figure(
        name="figure-12",
        title="Figure 12: knowing only the class and the peak of each curve",
        caption=f"{sets(table, NODES)}, {CURVES}, of which the algorithms are told the class's "
        f"regression times the job's peak; placement {NON_CLAIRVOYANT}, but 'clairvoyant' is "
        "best-bandwidth with greedy-clairvoyant. 95% bootstrap intervals.",
        panels=[
            Curves(
                title="Mean-I/O-SlowDown",
                x=LOAD,
                y="change to exact curves (%)",
                series=[
                    curve(
                        label,
                        changes(table, NODES, SLOWDOWN, approximate(name), name),
                        scale=100,
                    )
                    for name, label in names.items()
                ],
                references=[Reference(y=4.0, label="the paper's 4%")],
            ),
            Curves(
                title="Machine-IdleTime",
                x=LOAD,
                y="part of node time in I/O",
                series=[
                    means(table, NODES, approximate(name), IDLE, label)
                    for name, label in names.items()
                ],
            ),
        ],
    )


def _synthetic() -> Curves:
    curves = ost_curves()
    parts = np.array([curve.bandwidths for curve in curves])
    parts /= parts.max(axis=1, keepdims=True)
    low, high = np.percentile(parts, [10, 90], axis=0)
    return Curves(
        title=f"{len(curves)} synthetic curves",
        x="storage targets",
        y="bandwidth (part of the peak)",
        series=[
            Series(
                label="synthetic",
                x=curves[0].counts,
                y=parts.mean(axis=0).tolist(),
                low=low.tolist(),
                high=high.tolist(),
            )
        ],
        bottom=0,
        top=1.1,
    )


def _both_metrics(table: Table, scenario: str) -> list[Curves]:
    """Return the slowdown and the idle time of the paper's allocators over the load."""
    return [
        Curves(
            title=NAMES[metric],
            x=LOAD,
            y=label,
            series=[percentiles(table, scenario, pair(name), metric, name) for name in PAPER],
            log_y=metric == SLOWDOWN,
        )
        for metric, label in (
            (SLOWDOWN, "Mean-I/O-SlowDown"),
            (IDLE, "part of node time in I/O"),
        )
    ]


def _figure_13(table: Table) -> Figure:
    return Figure(
        name="figure-13",
        title="Figures 2 and 13: storage targets, synthetic",
        caption=f"{sets(table, OST)}, with synthetic curves over 1 to 8 targets; placement "
        f"{NON_CLAIRVOYANT}. Lines are means, areas the 10th to 90th percentile. Left: the curves, "
        "which stand in for the paper's 301; those are not public.",
        panels=[
            _synthetic(),
            *_both_metrics(table, OST),
        ],
        source="simulated, synthetic",
    )


def _twenty(table: Table) -> Figure:
    text = sets(table, TWENTY).replace("40 jobs", "20 jobs")
    return Figure(
        name="twenty-jobs",
        title="Beyond the paper: twenty jobs instead of forty",
        caption=f"{text}, {CURVES}; placement {NON_CLAIRVOYANT}. The paper does not print the "
        "number of jobs. Areas from the 10th to the 90th percentile.",
        panels=_both_metrics(table, TWENTY),
    )
