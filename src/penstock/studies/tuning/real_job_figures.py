"""Figures that rest on real jobs."""

from collections.abc import Iterator

import numpy as np

from penstock.report.findings import Cloud, Curves, Figure, Scatter, Series
from penstock.studies.panels import bars, curves
from penstock.studies.texts import captions_of
from penstock.studies.tuning.learning import show
from penstock.studies.tuning.measured import (
    COMPONENTS,
    FIXED,
    MADBENCH,
    MADBENCH_FIXED,
    MADBENCH_POLICIES,
    ONLINE,
    POLICIES,
    Measured,
    mean_seconds,
)
from penstock.studies.tuning.real_jobs import PLACES, decisions, ends, estimates

figure = captions_of("tuning")

MIB = 2**20


def figures(measured: Measured) -> list[Figure]:
    """Return all figures."""
    return [*_figures_4_6_and_4_7(measured), *_figures_4_8_to_4_12(measured)]


def _figures_4_6_and_4_7(measured: Measured) -> Iterator[Figure]:
    def panel(policy: str) -> Scatter:
        rows = measured.windows_in_force(f"{ONLINE}{policy}")
        clouds = [
            Cloud(
                label=operation,
                x=[float(row["at"] or 0) for row in rows if row["operation"] == operation],
                y=[
                    1e3 * float(row["window"] or 0) for row in rows if row["operation"] == operation
                ],
            )
            for operation in PLACES
        ]
        return Scatter(title=policy, x="seconds", y="window, ms", clouds=clouds, log_y=True)

    yield figure("fig-4-6-4-9-choices", [panel(policy) for policy in POLICIES], stacked=True)

    policy = POLICIES[0]
    panels = [
        bars(
            operation,
            [show(window) for window in each],
            {operation: [value / MIB for value in each.values()]},
            x="window",
            y="MiB/s per I/O node",
        )
        for operation, each in sorted(estimates(measured, f"{ONLINE}{policy}").items())
    ]
    if panels:  # a short run may have mixed intervals only
        yield figure("fig-4-7-estimates", panels, policy=policy)


def _against_fixed(
    title: str, y: str, values: dict[str, list[float]], fixed: dict[float, float], volume: float = 0
) -> Curves:
    """Return values by repetition, with lines for the best and the worst fixed window.

    `fixed` are seconds by window; with a `volume` the lines are bandwidths.
    """
    best, worst = ends(fixed)
    lines = {
        f"{word} fixed, {show(window)}": volume / fixed[window] / MIB if volume else fixed[window]
        for word, window in (("best", best), ("worst", worst))
    }
    series = [
        Series(label=label, x=list(range(1, len(each) + 1)), y=each)
        for label, each in values.items()
    ]
    return curves(title, "repetition", y, series, lines=lines, bottom=0)


def _figures_4_8_to_4_12(measured: Measured) -> Iterator[Figure]:
    runs = {policy: measured.jobs(f"{ONLINE}{policy}") for policy in POLICIES}
    panels = []
    for operation, place in PLACES.items():
        volume = runs[POLICIES[-1]][0][place][1]
        values = {
            policy: [run[0][place][1] / one[place][0] / MIB for one in run]
            for policy, run in runs.items()
        }
        fixed = measured.fixed(FIXED, (place,))
        panels.append(_against_fixed(operation, "MiB/s", values, fixed, volume))
    yield figure("fig-4-8-bandwidth", panels)

    panels = []
    for name, places in COMPONENTS.items():
        values = {
            policy: [mean_seconds([one], places) for one in measured.jobs(f"{MADBENCH} {policy}")]
            for policy in MADBENCH_POLICIES
        }
        fixed = measured.fixed(MADBENCH_FIXED, places)
        panels.append(_against_fixed(name, "seconds", values, fixed))
    yield figure("fig-4-10-4-11-madbench", panels)

    by_nodes = decisions(measured)
    series = [
        Series(
            label=label,
            x=[float(n) for n in by_nodes],
            y=[1e3 * float(np.quantile(each, part)) for each in by_nodes.values()],
        )
        for label, part in (("median", 0.5), ("99%", 0.99))
    ]
    panel = curves("one Council", "I/O nodes", "milliseconds", series, log_x=True, log_y=True)
    yield figure("fig-4-12-decision", [panel])
