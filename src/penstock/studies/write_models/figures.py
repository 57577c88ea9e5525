"""The study's figures: 1, 4, 5, 6 and 7 of the paper, on simulated machines."""

from collections.abc import Sequence

import numpy as np

from penstock.learn.write_models.regressors import FIVE
from penstock.learn.write_models.templates import TESTED
from penstock.report.findings import Bars, Cloud, Curves, Figure, Panel, Reference, Scatter, Series
from penstock.studies.write_models import paper
from penstock.studies.write_models.comparison import NAMES, Compared
from penstock.studies.write_models.work import ADAPTED

SOURCE = "Simulated write paths, not measurements of the machines"
POINTS = 60
"""Of a distribution that is drawn."""
LIMIT = 2.0
"""Relative errors are drawn up to this."""


def figures(compared: Sequence[Compared]) -> list[Figure]:
    """Return all figures."""
    return [
        _variation(compared),
        _squares(compared),
        *(_errors(one, number) for one, number in zip(compared, (5, 6), strict=True)),
        _shares(compared),
        _gains(compared),
    ]


def _distribution(label: str, values: Sequence[float]) -> Series:
    parts = np.linspace(0, 1, POINTS)
    return Series(label=label, x=np.quantile(values, parts).tolist(), y=parts.tolist())


def _variation(compared: Sequence[Compared]) -> Figure:
    return Figure(
        name="fig-1-variation",
        title="Fig. 1: how much identical runs differ",
        caption=f"{SOURCE}: largest over smallest time of ten identical runs, writes of the "
        "templates on 1 to 2,000 nodes. The simulator's interference was chosen so that Titan "
        "varies more; the paper prints no figures.",
        panels=[
            Curves(
                title="Distribution",
                x="largest / smallest",
                y="part of writes",
                series=[_distribution(one.machine, one.spreads) for one in compared],
                log_x=True,
                bottom=0.0,
            )
        ],
    )


def _squares(compared: Sequence[Compared]) -> Figure:
    panels: list[Panel] = []
    for one in compared:
        for part in ("converged", "unconverged"):
            best = [one.best[name].squares[part] for name in FIVE]
            base = [one.base[name].squares[part] for name in FIVE]
            least = min(*best, *base)
            panels.append(
                Bars(
                    title=f"{NAMES[one.machine]}, {part}",
                    x="",
                    y="mean square error / least",
                    labels=FIVE,
                    series=[
                        Series(label="chosen", x=(), y=[x / least for x in best]),
                        Series(label="base", x=(), y=[x / least for x in base]),
                    ],
                    log_y=True,
                    key=True,
                )
            )
    return Figure(
        name="fig-4-search",
        title="Fig. 4: models chosen among 255 subsets of scales, and those of all scales",
        caption=f"{SOURCE}. Trained on 1 to 128 nodes, tested on 200 to 2,000.",
        panels=panels,
        columns=2,
    )


def _errors(one: Compared, number: int) -> Figure:
    panels: list[Panel] = []
    for set_ in TESTED:
        order = np.argsort([sample.seconds for sample in one.tests[set_]])
        errors = {name: one.best[name].errors[set_][order] for name in FIVE}
        errors["ours"] = one.ours.errors[set_][order]
        panels.append(
            Scatter(
                title=f"{set_} set",
                x="samples, the shortest first",
                y="relative error",
                clouds=[
                    Cloud(
                        label=name,
                        x=list(range(len(values))),
                        y=np.clip(values, -LIMIT, LIMIT).tolist(),
                    )
                    for name, values in errors.items()
                ],
            )
        )
    return Figure(
        name=f"fig-{number}-errors-{one.machine}",
        title=f"Fig. {number}: errors of the chosen models on {NAMES[one.machine]}",
        caption=f"{SOURCE}. (t' - t) / t, cut at {LIMIT:g}; 'ours' is the physical term with "
        "boosted residuals.",
        panels=panels,
        stacked=True,
    )


def _shares(compared: Sequence[Compared]) -> Figure:
    panels: list[Panel] = [
        Bars(
            title=f"{NAMES[one.machine]}, within {within:g}",
            x="",
            y="part of samples",
            labels=paper.SETS,
            series=[
                Series(
                    label="paper's lasso",
                    x=(),
                    y=[paper.SHARES[one.machine][set_][k] for set_ in paper.SETS],
                ),
                Series(
                    label="lasso", x=(), y=[one.best["lasso"].share(s, within) for s in paper.SETS]
                ),
                Series(label="ours", x=(), y=[one.ours.share(s, within) for s in paper.SETS]),
            ],
            top=1.0,
            key=True,
        )
        for one in compared
        for k, within in enumerate((0.2, 0.3))
    ]
    return Figure(
        name="table-7-accuracy",
        title="Table VII: parts of the test sets that are predicted well",
        caption=f"{SOURCE}; the paper's are of the machines themselves.",
        panels=panels,
        columns=2,
    )


def _gains(compared: Sequence[Compared]) -> Figure:
    panels: list[Panel] = []
    for one in compared:
        times, theirs = paper.GAINS[one.machine]
        panels.append(
            Curves(
                title=NAMES[one.machine],
                x="times as fast",
                y="part of samples",
                series=[
                    _distribution("promised", [gain.promised for gain in one.gains[ADAPTED]]),
                    _distribution("simulated", [gain.simulated for gain in one.gains[ADAPTED]]),
                ],
                references=[Reference(y=1 - theirs, label=f"paper: {times:g}")],
                log_x=True,
                bottom=0.0,
            )
        )
    return Figure(
        name="fig-7-adaptation",
        title="Fig. 7: what adaptation guided by the chosen lasso gains",
        caption=f"{SOURCE}. Promised: t / (t'' - e). Simulated: the adapted write run in the "
        "simulator, without the cost of bringing data to aggregators. The line is the part of "
        "samples that the paper has below the gain beside it.",
        panels=panels,
    )
