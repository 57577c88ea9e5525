"""The figures that rest on real jobs."""

import numpy as np

from penstock.report.findings import Bars, Cloud, Curves, Figure, Reference, Scatter, Series
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

MEASURED = "Measured: real processes and I/O nodes, on an emulated file system"
MIB = 2**20
PLACES = {"write": jobs.WRITE, "read": jobs.READ}


def figures(seen: Measured) -> list[Figure]:
    """Return all figures."""
    return [_chosen(seen), _estimates(seen), _bandwidth(seen), _madbench(seen), _decisions(seen)]


def _chosen(seen: Measured) -> Figure:
    panels = []
    for policy in POLICIES:
        rows = seen.chosen(f"{ONLINE}{policy}")
        clouds = [
            Cloud(
                label=does,
                x=[float(row["at"] or 0) for row in rows if row["operation"] == does],
                y=[1e3 * float(row["window"] or 0) for row in rows if row["operation"] == does],
            )
            for does in PLACES
        ]
        panels.append(Scatter(title=policy, x="seconds", y="window, ms", clouds=clouds, log_y=True))
    return Figure(
        name="fig-4-6-4-9-choices",
        title="Figs. 4.6 and 4.9: windows in force while a job writes and reads in turn",
        caption=f"{MEASURED}: 16 processes, 4 I/O nodes, strided, 32 KiB; a dot an interval of "
        "0.25 s, coloured by what was seen in it.",
        panels=panels,
        stacked=True,
        source="measured",
    )


def _estimates(seen: Measured) -> Figure:
    found = estimates(seen, f"{ONLINE}{POLICIES[0]}")
    return Figure(
        name="fig-4-7-estimates",
        title=f"Fig. 4.7: what {POLICIES[0]} makes of each window at the end",
        caption=f"{MEASURED}. Mean over the contexts of an operation, as they count.",
        panels=[
            Bars(
                title=does,
                x="window",
                y="MiB/s an I/O node",
                labels=[show(window) for window in each],
                series=[Series(label=does, x=(), y=[value / MIB for value in each.values()])],
            )
            for does, each in sorted(found.items())
        ],
        source="measured",
    )


def _bandwidth(seen: Measured) -> Figure:
    panels = []
    for does, place in PLACES.items():
        fixed = seen.fixed(FIXED, (place,))
        best, worst = ends(fixed)
        series = []
        volume = 0.0
        for policy in POLICIES:
            repetitions = seen.jobs(f"{ONLINE}{policy}")
            volume = repetitions[0][place][1]
            series.append(
                Series(
                    label=policy,
                    x=list(range(1, len(repetitions) + 1)),
                    y=[volume / one[place][0] / MIB for one in repetitions],
                )
            )
        panels.append(
            Curves(
                title=does,
                x="repetition",
                y="MiB/s",
                series=series,
                references=[
                    Reference(y=volume / fixed[best] / MIB, label=f"best fixed, {show(best)}"),
                    Reference(y=volume / fixed[worst] / MIB, label=f"worst fixed, {show(worst)}"),
                ],
                bottom=0,
            )
        )
    return Figure(
        name="fig-4-8-bandwidth",
        title="Fig. 4.8: bandwidth while windows are learnt",
        caption=f"{MEASURED}; fixed windows are of other runs of the same job.",
        panels=panels,
        source="measured",
    )


def _madbench(seen: Measured) -> Figure:
    panels = []
    repetitions = seen.jobs(MADBENCH)
    for name, places in jobs.COMPONENTS.items():
        fixed = seen.fixed(MADBENCH_FIXED, places)
        best, worst = ends(fixed)
        panels.append(
            Curves(
                title=name,
                x="repetition",
                y="seconds",
                series=[
                    Series(
                        label=POLICIES[0],
                        x=list(range(1, len(repetitions) + 1)),
                        y=[mean_seconds([one], places) for one in repetitions],
                    )
                ],
                references=[
                    Reference(y=fixed[best], label=f"best fixed, {show(best)}"),
                    Reference(y=fixed[worst], label=f"worst fixed, {show(worst)}"),
                ],
                bottom=0,
            )
        )
    return Figure(
        name="fig-4-10-4-11-madbench",
        title="Figs. 4.10 and 4.11: S, W and C of a job like MADbench2",
        caption=f"{MEASURED}. Its writes and reads, not its computation: S writes, W reads and "
        "writes in turn, C reads.",
        panels=panels,
        source="measured",
    )


def _decisions(seen: Measured) -> Figure:
    found = decisions(seen)
    nodes = [float(n) for n in found]
    quantiles = {
        name: [1e3 * float(np.quantile(each, part)) for each in found.values()]
        for name, part in (("median", 0.5), ("99%", 0.99))
    }
    return Figure(
        name="fig-4-12-decision",
        title="Fig. 4.12: from the last report to the choice",
        caption="Measured: the Council alone, in one process, fed with observations of our I/O "
        "nodes on an emulated file system; the thesis' times are of a network.",
        panels=[
            Curves(
                title="one Council",
                x="I/O nodes",
                y="milliseconds",
                series=[Series(label=name, x=nodes, y=y) for name, y in quantiles.items()],
                log_x=True,
                log_y=True,
            )
        ],
        source="measured",
    )
