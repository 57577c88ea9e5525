"""The figures of the study: 1, 4, 5, 6 and 7 of the paper, on simulated machines."""

from collections.abc import Sequence

import numpy as np

from penstock.learn.write_models.regressors import PAPER_TECHNIQUES
from penstock.report.findings import Bars, Cloud, Figure, Scatter, Series
from penstock.sim.evaluate.write_samples import TEST_SCALES
from penstock.studies.panels import bars, curves
from penstock.studies.texts import captions_of
from penstock.studies.write_models import accuracy, claims
from penstock.studies.write_models.cells import ADAPTED
from penstock.studies.write_models.comparison import NAMES, Compared

figure = captions_of("write-models")

POINTS = 60
"""Points of a distribution's curve."""
LIMIT = 2.0
"""Figures show relative errors up to this."""
WRITES = "part of samples"


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
    series = [_distribution(one.machine, one.spreads) for one in compared]
    x, y = "largest / smallest", "part of writes"
    return figure("fig-1-variation", [curves("Distribution", x, y, series, log_x=True, bottom=0.0)])


def _squares(compared: Sequence[Compared]) -> Figure:
    def panel(one: Compared, part: str) -> Bars:
        models = {"chosen": one.best, "base": one.base}
        squares = {
            label: [by_name[name].squares[part] for name in PAPER_TECHNIQUES]
            for label, by_name in models.items()
        }
        least = min(min(values) for values in squares.values())
        heights = {label: [x / least for x in values] for label, values in squares.items()}
        title, y = f"{NAMES[one.machine]}, {part}", "mean square error / least"
        return bars(title, PAPER_TECHNIQUES, heights, y=y, log_y=True, key=True)

    parts = ("converged", "unconverged")
    panels = [panel(one, part) for one in compared for part in parts]
    return figure("fig-4-search", panels, columns=2)


def _errors(one: Compared, number: int) -> Figure:
    def panel(name: str) -> Scatter:
        order = np.argsort([sample.seconds for sample in one.tests[name]])
        errors = {technique: one.best[technique].errors for technique in PAPER_TECHNIQUES}
        errors["ours"] = one.ours.errors
        clouds = [
            Cloud(
                label=label,
                x=list(range(len(order))),
                y=np.clip(values[name][order], -LIMIT, LIMIT).tolist(),
            )
            for label, values in errors.items()
        ]
        return Scatter(
            title=f"{name} set", x="samples, the shortest first", y="relative error", clouds=clouds
        )

    return figure(
        "errors",
        [panel(name) for name in TEST_SCALES],
        name=f"fig-{number}-errors-{one.machine}",
        stacked=True,
        number=number,
        machine=NAMES[one.machine],
        limit=LIMIT,
    )


def _shares(compared: Sequence[Compared]) -> Figure:
    def panel(one: Compared, k: int, within: float) -> Bars:
        lasso = next(iter(one.lasso.values()))
        heights = {
            "paper's lasso": [accuracy.SHARES[one.machine][name][k] for name in accuracy.SETS],
            "lasso": [lasso[name].within[within].mean() for name in accuracy.SETS],
            "ours": [one.ours.share(name, within) for name in accuracy.SETS],
        }
        title = f"{NAMES[one.machine]}, within {within:g}"
        return bars(title, accuracy.SETS, heights, y=WRITES, top=1.0, key=True)

    panels = [panel(one, k, x) for one in compared for k, x in enumerate((0.2, 0.3))]
    return figure("table-7-accuracy", panels, columns=2)


def _gains(compared: Sequence[Compared]) -> Figure:
    panels = []
    for one in compared:
        times, part = claims.GAINS[one.machine]
        gains = one.gains[ADAPTED]
        series = [
            _distribution("promised", [gain.promised for gain in gains]),
            _distribution("simulated", [gain.simulated for gain in gains]),
        ]
        lines = {f"paper: {times:g}": 1 - part}
        panels.append(
            curves(
                NAMES[one.machine],
                "times as fast",
                WRITES,
                series,
                lines=lines,
                log_x=True,
                bottom=0.0,
            )
        )
    return figure("fig-7-adaptation", panels)
