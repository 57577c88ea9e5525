"""The figures of the study: Figures 5.2 to 5.11 of the thesis, and how STATIC may be read."""

from collections.abc import Sequence

from penstock.data import COUNTS
from penstock.report.findings import Bars, Figure, Series
from penstock.studies.captions import load as captions_of
from penstock.studies.forwarding_policies import applications, decisions, queue_figures, sets
from penstock.studies.forwarding_policies.patterns import (
    BEST,
    CHOICES,
    READINGS,
    SHOWN,
    STATISTICS,
    TABLE_5_1,
    patterns_by,
)
from penstock.studies.panels import bars, curves
from penstock.studies.table import Table

figure = captions_of("forwarding-policies")

AVAILABLE = "available I/O nodes"
MN4 = "Measured on MareNostrum 4 (Bez et al., PDSW 2020)."
POOLS = (4, 8, 12, 16, 24, 32, 36, 48)
"""The numbers of I/O nodes that the bars show."""


def figures(table: Table) -> list[Figure]:
    """Return the study's figures in the thesis' order, ours last."""
    return [
        _figure_5_2(table),
        _figure_5_3(table),
        _figure_5_5(table),
        _figure_5_6(table),
        _readings(table),
        _figure_5_9(table, "bandwidth", "a", "bandwidth of each application"),
        _figure_5_9(table, "io_nodes", "b", "I/O nodes of each application"),
        _figure_5_10(table),
        _figure_5_11(table),
        *queue_figures.figures(table),
    ]


def _figure_5_2(table: Table) -> Figure:
    def series(letter: str) -> Series:
        mean, low, high = (
            [float(table.values(SHOWN, n, letter, what)[0]) for n in COUNTS]
            for what in ("mean", "low", "high")
        )
        return Series(label=letter, x=(), y=mean, low=low, high=high)

    labels = [str(n) for n in COUNTS]
    panels = [bars(letter, labels, [series(letter)], small=True) for letter in TABLE_5_1]
    return figure("figure-5.2", panels, columns=7)


def _figure_5_3(table: Table) -> Figure:
    numbers = range(1, len(COUNTS) + 1)
    choices = {r: [patterns_by(table, CHOICES, r)[n] for n in numbers] for r in READINGS}
    best = {f"by {s}": list(patterns_by(table, BEST, s).values()) for s in STATISTICS}
    labels = [str(n) for n in numbers]
    counts = [str(n) for n in COUNTS]
    panels = [
        bars("Choices", labels, choices, x="distinct choices", y="patterns", key=True),
        bars("Best count", counts, best, x="I/O nodes (0: direct)", y="patterns", key=True),
    ]
    return figure("figure-5.3", panels)


def _over_pools(
    table: Table, scenario: str, policy: str, label: str, *, scale: float, start: int = 0
) -> Series:
    points = [x for x in table.points(scenario) if x >= start]
    median, low, high = (
        (scale * table.grid(scenario, policy, q, points).mean(axis=0)).tolist()
        for q in ("median", "q25", "q75")
    )
    return Series(label=label, x=points, y=median, low=low, high=high)


def _sample(table: Table) -> str:
    draws = len(table.rows(sets.MACHINE, 0, "nodes"))
    return (
        f"{sets.SETS:,} random sets of {sets.SIZE} of the 189 patterns, drawn {draws} times. {MN4}"
    )


def _figure_5_5(table: Table) -> Figure:
    y = "aggregate bandwidth (GB/s)"
    series = [_over_pools(table, sets.BANDWIDTH, p, p, scale=1e-3) for p in sets.POLICIES]
    medians = [Series(label=s.label, x=s.x, y=s.y) for s in series]
    some = [s for s in series if s.label in ("mckp", "static", "zero")]
    panels = [
        curves("Medians", AVAILABLE, y, medians, bottom=0.0),
        curves("With the middle half of the sets", AVAILABLE, y, some, bottom=0.0),
    ]
    return figure("figure-5.5", panels, sample=_sample(table), size=sets.SIZE)


def _figure_5_6(table: Table) -> Figure:
    def extreme(quantile: str, label: str) -> Series:
        points = [x for x in table.points(sets.BANDWIDTH) if x >= sets.SIZE]
        values = table.grid(sets.OVER, "mckp over static", quantile, points).mean(axis=0)
        return Series(label=label, x=points, y=(1 + values).tolist())

    by_size = [
        _over_pools(table, sets.OVER, f"mckp over {p}", p, scale=100, start=sets.SIZE)
        for p in sets.RIVALS
    ]
    labels = {
        "max": "static, most",
        "q95": "static, 95%",
        "median": "static",
        "q05": "static, 5%",
        "min": "static, least",
    }
    panels = [
        curves(
            "mckp over the policies by size",
            AVAILABLE,
            "gain in bandwidth (%)",
            by_size,
            bottom=0.0,
        ),
        curves(
            "mckp over static",
            AVAILABLE,
            "times static's bandwidth",
            [extreme(quantile, label) for quantile, label in labels.items()],
            lines={"as static": 1.0},
            log_y=True,
        ),
    ]
    return figure("figure-5.6", panels, size=sets.SIZE, sample=_sample(table))


def _readings(table: Table) -> Figure:
    def gains(rounding: str, quantile: str) -> list[float]:
        readings = [f"{machine}, {rounding}" for machine in sets.MACHINES]
        values = (table.values(sets.STATIC, sets.OPTIMAL, r, quantile) for r in readings)
        return [100 * float(value.mean()) for value in values]

    series = []
    for rounding in sets.ROUNDINGS:
        median, low, high = (gains(rounding, quantile) for quantile in ("median", "q25", "q75"))
        series.append(Series(label=rounding, x=(), y=median, low=low, high=high))
    panel = bars(
        "mckp over static",
        list(sets.MACHINES),
        series,
        x="compute nodes of the machine",
        y="gain in bandwidth (%)",
        lines={"the thesis": 211.38},
        key=True,
    )
    return figure("static-readings", [panel], size=sets.OPTIMAL, sample=_sample(table))


def _figure_5_9(table: Table, what: str, part: str, title: str) -> Figure:
    unit = "MB/s" if what == "bandwidth" else "I/O nodes"
    top = 1.05 * max(
        sum(decisions.by_application(table, n, policy, what).values())
        for n in table.points(applications.SCENARIO)
        for policy in applications.OPTIONS
    )

    def panel(
        title: str, points: Sequence[tuple[float, str]], labels: Sequence[str], x: str
    ) -> Bars:
        columns = [decisions.by_application(table, n, policy, what) for n, policy in points]
        heights = {name: [column[name] for column in columns] for name in applications.NAMES}
        key = title == "mckp"
        return bars(title, labels, heights, x=x, y=unit, stacked=True, top=top, key=key)

    fixed = ("zero", "one", "oracle")
    last = float(applications.MOST)
    pools = [str(n) for n in POOLS]
    panels = [
        panel("not arbitrated", [(last, policy) for policy in fixed], fixed, ""),
        *(
            panel(policy, [(n, policy) for n in POOLS], pools, AVAILABLE)
            for policy in ("static", "size", "mckp")
        ),
    ]
    return figure("figure-5.9", panels, name=f"figure-5.9{part}", part=part, title=title)


def _figure_5_10(table: Table) -> Figure:
    def parts(io_nodes: int) -> list[float]:
        best = decisions.by_application(table, io_nodes, "mckp", "alone")
        ours = decisions.by_application(table, io_nodes, "mckp", "bandwidth")
        return [100 * ours[name] / best[name] for name in applications.NAMES]

    names, y = applications.NAMES, "of its best alone (%)"
    pools = (4, 8, 12, 16, 24, 32)
    panels = [bars(f"{n} I/O nodes", names, {"mckp": parts(n)}, y=y) for n in pools]
    return figure("figure-5.10", panels, columns=3)


def _figure_5_11(table: Table) -> Figure:
    labels = [str(n) for n in POOLS]
    gained = [decisions.difference(table, n) for n in POOLS]
    panels = [
        bars(
            name,
            labels,
            {name: [by_application[name] for by_application in gained]},
            x=AVAILABLE,
            y="MB/s",
            colour_by="sign",
        )
        for name in applications.NAMES
    ]
    return figure("figure-5.11", panels, columns=3)
