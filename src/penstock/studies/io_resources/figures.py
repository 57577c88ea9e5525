"""The study's figures, as records for a report to draw; here Figures 5 to 10."""

from collections.abc import Mapping, Sequence

from penstock.campaign.journal import CellId
from penstock.report.findings import Curves, Dots, Figure, Reference
from penstock.studies.io_resources import curve_figures, search_figures
from penstock.studies.io_resources.drawing import (
    CURVES,
    LOAD,
    PAPER,
    means,
    percentiles,
    sets,
)
from penstock.studies.io_resources.scenarios import (
    ALLOCATORS,
    CLAIRVOYANT,
    MCKP,
    NON_CLAIRVOYANT,
    PLACERS,
    RANDOM,
    pair,
)
from penstock.studies.io_resources.terms import (
    BEST,
    BY_COUNT,
    BY_OTHERS,
    HIGH,
    IDLE,
    LOW,
    MAX,
    N_SYS,
    NAMES,
    NODES,
    SLOWDOWN,
    SPREAD,
    T_CPU,
    changes,
    unsaturated,
)
from penstock.studies.table import Estimate, Table, bootstrap, curve

SHORT = {CLAIRVOYANT: "clairvoyant", NON_CLAIRVOYANT: "non-clairvoyant", RANDOM: "random"}


def figures(table: Table, seconds: Mapping[CellId, float]) -> list[Figure]:
    """Return the figures in the paper's order, ours last."""
    return [
        _figure_5(table),
        _figure_6(table),
        _figure_7(table),
        _figure_8(table),
        _figure_9(table),
        _figure_10(table),
        *curve_figures.figures(table),
        *search_figures.figures(table, seconds),
    ]


def _figure_5(table: Table) -> Figure:
    return Figure(
        name="figure-5",
        title="Figure 5: Mean-I/O-SlowDown for all pairs of allocation and placement",
        caption=f"{sets(table, NODES)}, {CURVES}. Lines are means, areas the 10th to 90th "
        "percentile. MCKP, which brings its own placement, is far above (Figure 8). Loads above 1 "
        "are saturated; the paper does not show them.",
        panels=[
            Curves(
                title=placer,
                x=LOAD,
                y="Mean-I/O-SlowDown",
                series=[
                    percentiles(table, NODES, pair(name, placer), SLOWDOWN, name) for name in PAPER
                ],
                bottom=1,
                top=20,
                log_y=True,
            )
            for placer in PLACERS
        ],
    )


def _figure_6(table: Table) -> Figure:
    load = 0.5

    def panel(allocator: str) -> Dots:
        found = [table.mean(NODES, load, pair(allocator, placer), SPREAD) for placer in PLACERS]
        return Dots(
            title=f"{allocator} allocation",
            labels=[SHORT[placer] for placer in PLACERS],
            value=[e.value for e in found],
            low=[e.low for e in found],
            high=[e.high for e in found],
            better="lower",
        )

    return Figure(
        name="figure-6",
        title="Figure 6: I/O-spread of the placements at load 0.5",
        caption=f"{sets(table, NODES)}, {CURVES}. The busiest I/O node's occupation less the "
        "idlest one's; bars are 95% bootstrap intervals of the mean.",
        panels=[panel(name) for name in (BEST, N_SYS, "random")],
    )


def _figure_7(table: Table) -> Figure:
    return Figure(
        name="figure-7",
        title="Figure 7: I/O-spread over the load",
        caption=f"{sets(table, NODES)}, {CURVES}. The paper shows best-bandwidth at 0.2, 0.5 and "
        "0.8. Areas are 95% bootstrap intervals of the mean.",
        panels=[
            Curves(
                title=f"{name} allocation",
                x=LOAD,
                y="I/O-spread",
                series=[
                    means(table, NODES, pair(name, placer), SPREAD, SHORT[placer])
                    for placer in PLACERS
                ],
            )
            for name in (BEST, T_CPU)
        ],
    )


def _over(table: Table, policy: str, metric: str, loads: Sequence[float]) -> Estimate:
    return bootstrap(lambda mean: mean.mean(axis=1), table.grid(NODES, policy, metric, list(loads)))


def _figure_8(table: Table) -> Figure:
    names = [*ALLOCATORS, "mckp"]

    def panel(metric: str, loads: Sequence[float], where: str) -> Dots:
        found = [
            _over(table, MCKP if name == "mckp" else pair(name), metric, loads) for name in names
        ]
        return Dots(
            title=f"{NAMES[metric].removesuffix('-I/O-SlowDown')}, {where} load",
            labels=names,
            value=[e.value for e in found],
            low=[e.low for e in found],
            high=[e.high for e in found],
            better="lower",
            log=True,
        )

    return Figure(
        name="figure-8",
        title="Figure 8: Mean- and Max-I/O-SlowDown at low and high load",
        caption=f"{sets(table, NODES)}, {CURVES}; placement {NON_CLAIRVOYANT}, MCKP its own. Low: "
        f"{LOW[0]:g} to {LOW[-1]:g}, high: {HIGH[0]:g} to {HIGH[-1]:g}. 't-cpu, strict' is "
        "Algorithm 1 with the comparison mended. Logarithmic scale.",
        panels=[
            panel(metric, loads, where)
            for metric in (SLOWDOWN, MAX)
            for loads, where in ((LOW, "low"), (HIGH, "high"))
        ],
    )


def _figure_9(table: Table) -> Figure:
    titles = {BY_COUNT: r"$\rho_{io}$: the count", BY_OTHERS: r"$\rho_{con}$: the others"}
    return Figure(
        name="figure-9",
        title="Figure 9: what of the slowdown is the count's, and what the others'",
        caption=f"{sets(table, NODES)}, {CURVES}; placement {NON_CLAIRVOYANT}. Means (the paper "
        "draws a regression) with 95% bootstrap intervals.",
        panels=[
            Curves(
                title=titles[metric],
                x=LOAD,
                y="part of Mean-I/O-SlowDown",
                series=[means(table, NODES, pair(name), metric, name) for name in PAPER],
            )
            for metric in (BY_COUNT, BY_OTHERS)
        ],
    )


def _figure_10(table: Table) -> Figure:
    loads = unsaturated(table, NODES)
    relative = {
        name: curve(name, changes(table, NODES, IDLE, pair(name), pair(BEST)), scale=100)
        for name in ("static", N_SYS, T_CPU)
    }
    return Figure(
        name="figure-10",
        title="Figure 10: Machine-IdleTime over the load",
        caption=f"{sets(table, NODES)}, {CURVES}; placement {NON_CLAIRVOYANT}. Left: areas from "
        f"the 10th to the 90th percentile. Right: means at loads up to {loads[-1]:g}, 95% "
        "bootstrap intervals.",
        panels=[
            Curves(
                title="Machine-IdleTime",
                x=LOAD,
                y="part of node time in I/O",
                series=[percentiles(table, NODES, pair(name), IDLE, name) for name in PAPER],
            ),
            Curves(
                title="Against best-bandwidth",
                x=LOAD,
                y="Machine-IdleTime, change (%)",
                series=list(relative.values()),
                references=[Reference(y=0.0, label="best-bandwidth")],
            ),
        ],
    )
