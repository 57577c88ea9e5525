"""The figures that rest on real jobs."""

import numpy as np

from penstock.report.findings import Cloud, Curves, Figure, Scatter, Series
from penstock.studies.captions import load as captions_of
from penstock.studies.panels import bars, curves
from penstock.studies.tuning import jobs
from penstock.studies.tuning.claims import show
from penstock.studies.tuning.live_claims import decisions, ends, estimates
from penstock.studies.tuning.measured import (
    FIXED,
    MADBENCH,
    MADBENCH_FIXED,
    ONLINE,
    POLICIES,
    Measured,
    mean_seconds,
)

figure = captions_of("tuning")

MIB = 2**20
PLACES = {"write": jobs.WRITE, "read": jobs.READ}


def figures(measured: Measured) -> list[Figure]:
    """Return all figures."""
    return [
        _windows(measured),
        _estimates(measured),
        _bandwidth(measured),
        _madbench(measured),
        _decisions(measured),
    ]


def _windows(measured: Measured) -> Figure:
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

    return figure("fig-4-6-4-9-choices", [panel(policy) for policy in POLICIES], stacked=True)


def _estimates(measured: Measured) -> Figure:
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
    return figure("fig-4-7-estimates", panels, policy=policy)


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


def _bandwidth(measured: Measured) -> Figure:
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
    return figure("fig-4-8-bandwidth", panels)


def _madbench(measured: Measured) -> Figure:
    repetitions = measured.jobs(MADBENCH)
    panels = []
    for name, places in jobs.COMPONENTS.items():
        values = {POLICIES[0]: [mean_seconds([one], places) for one in repetitions]}
        fixed = measured.fixed(MADBENCH_FIXED, places)
        panels.append(_against_fixed(name, "seconds", values, fixed))
    return figure("fig-4-10-4-11-madbench", panels)


def _decisions(measured: Measured) -> Figure:
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
    return figure("fig-4-12-decision", [panel])
