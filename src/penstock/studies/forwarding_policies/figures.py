"""The figures of the study, as records for a report to draw."""

from collections.abc import Sequence

from penstock.data import COUNTS
from penstock.report.findings import Bars, Curves, Figure, Reference, Series
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
from penstock.studies.forwarding_policies.queue_figures import G5K, bars
from penstock.studies.table import Table

MEASURED, COMPUTED = "measured", "computed from measured curves"
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
    panels = []
    for letter in TABLE_5_1:
        mean, low, high = (
            [float(table.values(SHOWN, n, letter, what)[0]) for n in COUNTS]
            for what in ("mean", "low", "high")
        )
        panels.append(
            Bars(
                title=letter,
                x="",
                y="",
                labels=[str(n) for n in COUNTS],
                series=[bars(letter, mean, low, high)],
                small=True,
            )
        )
    return Figure(
        name="figure-5.2",
        title="Figure 5.2: write bandwidth (MB/s) of twenty patterns by number of I/O nodes",
        caption=f"{MN4} The patterns of Table 5.1; 0 is direct access. Bars are means over "
        "repetitions, lines go from the least to the most. Each panel has its own scale.",
        panels=panels,
        columns=7,
        source=MEASURED,
    )


def _figure_5_3(table: Table) -> Figure:
    numbers = range(1, len(COUNTS) + 1)
    return Figure(
        name="figure-5.3",
        title="Figure 5.3: how many choices a pattern has, and which is the best",
        caption=f"{MN4} Left: statistically distinct choices of the 189 patterns (Kruskal-Wallis, "
        "Dunn), counted in three ways. Right: the count with the highest bandwidth, by three "
        "statistics over repetitions; the thesis shows the maximum.",
        panels=[
            Bars(
                title="Choices",
                x="distinct choices",
                y="patterns",
                labels=[str(n) for n in numbers],
                series=[
                    bars(reading, [patterns_by(table, CHOICES, reading)[n] for n in numbers])
                    for reading in READINGS
                ],
                key=True,
            ),
            Bars(
                title="Best count",
                x="I/O nodes (0: direct)",
                y="patterns",
                labels=[str(n) for n in COUNTS],
                series=[
                    bars(f"by {statistic}", list(patterns_by(table, BEST, statistic).values()))
                    for statistic in STATISTICS
                ],
                key=True,
            ),
        ],
        source=MEASURED,
    )


def _over_pools(
    table: Table, scenario: str, policy: str, label: str, *, scale: float, start: int = 0
) -> Series:
    points = [x for x in table.points(scenario) if x >= start]
    median, low, high = (
        (scale * table.grid(scenario, policy, q, points).mean(axis=0)).tolist()
        for q in ("median", "q25", "q75")
    )
    return Series(label=label, x=points, y=median, low=low, high=high)


def _drawn(table: Table) -> str:
    draws = len(table.rows(sets.MACHINE, 0, "nodes"))
    return (
        f"{sets.SETS:,} random sets of {sets.SIZE} of the 189 patterns, drawn {draws} times. {MN4}"
    )


def _figure_5_5(table: Table) -> Figure:
    series = [
        _over_pools(table, sets.BANDWIDTH, policy, policy, scale=1e-3) for policy in sets.POLICIES
    ]
    return Figure(
        name="figure-5.5",
        title="Figure 5.5: aggregate bandwidth of random sets of 16 applications",
        caption=f"Medians over sets (left), with the middle half of the sets (right). "
        f"{_drawn(table)} Below {sets.SIZE} I/O nodes one and static give more than there are.",
        panels=[
            Curves(
                title="Medians",
                x=AVAILABLE,
                y="aggregate bandwidth (GB/s)",
                series=[Series(label=s.label, x=s.x, y=s.y) for s in series],
                bottom=0.0,
            ),
            Curves(
                title="With the middle half of the sets",
                x=AVAILABLE,
                y="aggregate bandwidth (GB/s)",
                series=[s for s in series if s.label in ("mckp", "static", "zero")],
                bottom=0.0,
            ),
        ],
        source=COMPUTED,
    )


def _figure_5_6(table: Table) -> Figure:
    def extreme(quantile: str, label: str) -> Series:
        points = [x for x in table.points(sets.BANDWIDTH) if x >= sets.SIZE]
        values = table.grid(sets.OVER, "mckp over static", quantile, points).mean(axis=0)
        return Series(label=label, x=points, y=(1 + values).tolist())

    return Figure(
        name="figure-5.6",
        title="Figure 5.6: what mckp gains",
        caption="Aggregate bandwidth of mckp over that of the policies that go by size, set by "
        f"set, from {sets.SIZE} I/O nodes on. Left: medians and the middle half of the sets. "
        f"Right: over static, with the extremes and 90% of the sets. {_drawn(table)}",
        panels=[
            Curves(
                title="mckp over the policies by size",
                x=AVAILABLE,
                y="gain in bandwidth (%)",
                series=[
                    _over_pools(table, sets.OVER, f"mckp over {p}", p, scale=100, start=sets.SIZE)
                    for p in sets.RIVALS
                ],
                bottom=0.0,
            ),
            Curves(
                title="mckp over static",
                x=AVAILABLE,
                y="times static's bandwidth",
                series=[
                    extreme("max", "static, most"),
                    extreme("q95", "static, 95%"),
                    extreme("median", "static"),
                    extreme("q05", "static, 5%"),
                    extreme("min", "static, least"),
                ],
                references=[Reference(y=1.0, label="as static")],
                log_y=True,
            ),
        ],
        source=COMPUTED,
    )


def _readings(table: Table) -> Figure:
    def gains(rounding: str, quantile: str) -> list[float]:
        readings = [f"{machine}, {rounding}" for machine in sets.MACHINES]
        values = (table.values(sets.STATIC, sets.OPTIMAL, r, quantile) for r in readings)
        return [100 * float(value.mean()) for value in values]

    return Figure(
        name="static-readings",
        title=f"How STATIC may be read, at {sets.OPTIMAL} I/O nodes",
        caption="What mckp gains over STATIC by the machine's compute nodes CN, the rounding of "
        "C F / CN (ceil or nearest), and the rounding of that to a measured count (down or up): "
        f"medians, and the middle half of the sets. {_drawn(table)}",
        panels=[
            Bars(
                title="mckp over static",
                x="compute nodes of the machine",
                y="gain in bandwidth (%)",
                labels=list(sets.MACHINES),
                series=[
                    bars(
                        rounding,
                        gains(rounding, "median"),
                        gains(rounding, "q25"),
                        gains(rounding, "q75"),
                    )
                    for rounding in sets.ROUNDINGS
                ],
                references=[Reference(y=211.38, label="the thesis")],
                key=True,
            )
        ],
        source=COMPUTED,
    )


def _figure_5_9(table: Table, what: str, part: str, title: str) -> Figure:
    name = applications.SCENARIO
    unit = "MB/s" if what == "bandwidth" else "I/O nodes"

    def panel(
        title: str, points: Sequence[tuple[float, str]], labels: Sequence[str], x: str
    ) -> Bars:
        given = [decisions.by_application(table, n, policy, what) for n, policy in points]
        return Bars(
            title=title,
            x=x,
            y=unit,
            labels=labels,
            series=[bars(k, [values[k] for values in given]) for k in applications.NAMES],
            stacked=True,
            top=1.05 * most,
            key=title == "mckp",
        )

    most = max(
        sum(decisions.by_application(table, n, policy, what).values())
        for n in table.points(name)
        for policy in applications.OPTIONS
    )
    fixed = ("zero", "one", "oracle")
    last = float(applications.MOST)
    pools = [str(n) for n in POOLS]
    return Figure(
        name=f"figure-5.9{part}",
        title=f"Figure 5.9({part}): {title}",
        caption=f"Six applications under the registered policies. {G5K} zero, one and oracle do "
        "not depend on the number of I/O nodes.",
        panels=[
            panel("not arbitrated", [(last, policy) for policy in fixed], fixed, ""),
            *(
                panel(policy, [(n, policy) for n in POOLS], pools, AVAILABLE)
                for policy in ("static", "size", "mckp")
            ),
        ],
        source=COMPUTED,
    )


def _figure_5_10(table: Table) -> Figure:
    pools = (4, 8, 12, 16, 24, 32)

    def parts(io_nodes: int) -> list[float]:
        best = decisions.by_application(table, io_nodes, "mckp", "alone")
        ours = decisions.by_application(table, io_nodes, "mckp", "bandwidth")
        return [100 * ours[name] / best[name] for name in applications.NAMES]

    return Figure(
        name="figure-5.10",
        title="Figure 5.10: what mckp leaves each application",
        caption="Bandwidth under mckp, beside the others, over the best that the application "
        f"reaches alone with up to so many I/O nodes. {G5K}",
        panels=[
            Bars(
                title=f"{n} I/O nodes",
                x="",
                y="of its best alone (%)",
                labels=applications.NAMES,
                series=[bars("mckp", parts(n))],
            )
            for n in pools
        ],
        columns=3,
        source=COMPUTED,
    )


def _figure_5_11(table: Table) -> Figure:
    return Figure(
        name="figure-5.11",
        title="Figure 5.11: bandwidth under mckp minus that under static",
        caption="Above zero (blue) the application is faster under mckp. Each panel has its own "
        f"scale. {G5K}",
        panels=[
            Bars(
                title=name,
                x=AVAILABLE,
                y="MB/s",
                labels=[str(n) for n in POOLS],
                series=[bars(name, [decisions.difference(table, n)[name] for n in POOLS])],
                colour_by="sign",
            )
            for name in applications.NAMES
        ],
        columns=3,
        source=COMPUTED,
    )
