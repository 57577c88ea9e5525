"""The figures of the study; here the paper's Figures 5 to 10."""

from collections.abc import Mapping, Sequence

from penstock.campaign.journal import CellId
from penstock.report.findings import Dots, Figure
from penstock.studies.io_resources import curve_figures, search_figures
from penstock.studies.io_resources.drawing import (
    IDLE_PART,
    LOAD,
    PAPER,
    figure,
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
from penstock.studies.panels import curves, dots, means
from penstock.studies.table import Table, bootstrap, curve

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
    panels = [
        curves(
            placer,
            LOAD,
            "Mean-I/O-SlowDown",
            [percentiles(table, NODES, pair(name, placer), SLOWDOWN, name) for name in PAPER],
            bottom=1,
            top=20,
            log_y=True,
        )
        for placer in PLACERS
    ]
    return figure("figure-5", panels, sets=sets(table, NODES))


def _figure_6(table: Table) -> Figure:
    def panel(allocator: str) -> Dots:
        spreads = {
            SHORT[placer]: table.mean(NODES, 0.5, pair(allocator, placer), SPREAD)
            for placer in PLACERS
        }
        return dots(f"{allocator} allocation", spreads)

    panels = [panel(name) for name in (BEST, N_SYS, "random")]
    return figure("figure-6", panels, sets=sets(table, NODES))


def _figure_7(table: Table) -> Figure:
    panels = [
        curves(
            f"{name} allocation",
            LOAD,
            "I/O-spread",
            [means(table, NODES, pair(name, p), SPREAD, SHORT[p]) for p in PLACERS],
        )
        for name in (BEST, T_CPU)
    ]
    return figure("figure-7", panels, sets=sets(table, NODES))


def _figure_8(table: Table) -> Figure:
    policies = {**{name: pair(name) for name in ALLOCATORS}, "mckp": MCKP}

    def panel(metric: str, loads: Sequence[float], where: str) -> Dots:
        estimates = {
            name: bootstrap(lambda mean: mean.mean(axis=1), table.grid(NODES, p, metric, loads))
            for name, p in policies.items()
        }
        title = f"{NAMES[metric].removesuffix('-I/O-SlowDown')}, {where} load"
        return dots(title, estimates, log=True)

    panels = [
        panel(metric, loads, where)
        for metric in (SLOWDOWN, MAX)
        for loads, where in ((LOW, "low"), (HIGH, "high"))
    ]
    return figure("figure-8", panels, sets=sets(table, NODES), low=LOW, high=HIGH)


def _figure_9(table: Table) -> Figure:
    titles = {BY_COUNT: r"$\rho_{io}$: the count", BY_OTHERS: r"$\rho_{con}$: the others"}
    panels = [
        curves(
            title,
            LOAD,
            "part of Mean-I/O-SlowDown",
            [means(table, NODES, pair(name), metric, name) for name in PAPER],
        )
        for metric, title in titles.items()
    ]
    return figure("figure-9", panels, sets=sets(table, NODES))


def _figure_10(table: Table) -> Figure:
    idle = [percentiles(table, NODES, pair(name), IDLE, name) for name in PAPER]
    relative = [
        curve(name, changes(table, NODES, IDLE, pair(name), pair(BEST)), scale=100)
        for name in ("static", N_SYS, T_CPU)
    ]
    y = "Machine-IdleTime, change (%)"
    panels = [
        curves("Machine-IdleTime", LOAD, IDLE_PART, idle),
        curves("Against best-bandwidth", LOAD, y, relative, lines={"best-bandwidth": 0.0}),
    ]
    last = unsaturated(table, NODES)[-1]
    return figure("figure-10", panels, sets=sets(table, NODES), last=last)
