"""The figures of the study: the paper's Figures 5 to 13, twenty jobs, and our search."""

from collections.abc import Iterator, Mapping

import numpy as np

from penstock.campaign.journal import CellId
from penstock.model.curve import Shape
from penstock.report.findings import Curves, Figure, Series
from penstock.sim.generators.io_resources import JOBS, mn4_curves, ost_curves
from penstock.studies.io_resources import search
from penstock.studies.io_resources.comparisons import (
    BEST,
    BY_COUNT,
    BY_JOBS,
    BY_OTHERS,
    HIGH,
    IDLE,
    IDLE_PART,
    LOAD,
    LOW,
    MAX,
    N_SYS,
    NAMES,
    NODES,
    PAPER,
    SLOWDOWN,
    SPREAD,
    STATIC,
    T_CPU,
    Sweep,
    figure,
)
from penstock.studies.io_resources.robustness import FIGURE_12, approximate
from penstock.studies.io_resources.scenarios import (
    ALLOCATORS,
    MCKP,
    OST,
    OST_MEASURED,
    PLACERS,
    learnt,
    pair,
)
from penstock.studies.panels import curves, dots, means
from penstock.studies.table import Floats, Table, bootstrap, curve

PART = "bandwidth (part of the peak)"
SHAPES: tuple[Shape, ...] = ("ascent", "descent", "peak", "neutral")


def figures(table: Table, seconds: Mapping[CellId, float]) -> list[Figure]:
    """Return the figures in the paper's order, ours last."""
    return [*_users(table), *_machine(table), *_by_curves(table), *search.figures(table, seconds)]


def _users(table: Table) -> Iterator[Figure]:
    """Yield Figures 5 to 8."""
    nodes = Sweep(table, NODES)
    sets, short = nodes.sets(), {placer: placer.removeprefix("greedy-") for placer in PLACERS}
    panels = []
    for placer in PLACERS:
        series = [nodes.percentiles(pair(name, placer), SLOWDOWN, name) for name in PAPER]
        panels.append(curves(placer, LOAD, NAMES[SLOWDOWN], series, bottom=1, top=20, log_y=True))
    yield figure("figure-5", panels, sets=sets)

    spreads = {
        name: {short[p]: table.mean(NODES, 0.5, pair(name, p), SPREAD) for p in PLACERS}
        for name in (BEST, N_SYS, "random")
    }
    at_half = [dots(f"{name} allocation", by_placer) for name, by_placer in spreads.items()]
    yield figure("figure-6", at_half, sets=sets)

    panels = []
    for name in (BEST, T_CPU):
        series = [means(table, NODES, pair(name, p), SPREAD, short[p]) for p in PLACERS]
        panels.append(curves(f"{name} allocation", LOAD, "I/O-spread", series))
    yield figure("figure-7", panels, sets=sets)

    policies = {**{name: pair(name) for name in ALLOCATORS}, "mckp": MCKP}
    low_and_high = []
    for metric in (SLOWDOWN, MAX):
        for loads, where in ((LOW, "low"), (HIGH, "high")):
            estimates = {
                name: bootstrap(lambda mean: mean.mean(axis=1), table.grid(NODES, p, metric, loads))
                for name, p in policies.items()
            }
            title = f"{NAMES[metric].removesuffix('-I/O-SlowDown')}, {where} load"
            low_and_high.append(dots(title, estimates, log=True))
    yield figure("figure-8", low_and_high, sets=sets, low=LOW, high=HIGH)


def _machine(table: Table) -> Iterator[Figure]:
    """Yield Figures 9 and 10."""
    nodes = Sweep(table, NODES)
    panels = []
    titles = {BY_COUNT: r"$\rho_{io}$: the count", BY_OTHERS: r"$\rho_{con}$: the others"}
    for metric, title in titles.items():
        series = [means(table, NODES, pair(name), metric, name) for name in PAPER]
        panels.append(curves(title, LOAD, "part of Mean-I/O-SlowDown", series))
    yield figure("figure-9", panels, sets=nodes.sets())

    idle = [nodes.percentiles(name, IDLE, name) for name in PAPER]
    relative = [
        curve(name, nodes.changes(IDLE, name, BEST), scale=100) for name in (STATIC, N_SYS, T_CPU)
    ]
    y = "Machine-IdleTime, change (%)"
    panels = [
        curves("Machine-IdleTime", LOAD, IDLE_PART, idle),
        curves("Against best-bandwidth", LOAD, y, relative, lines={"best-bandwidth": 0.0}),
    ]
    yield figure("figure-10", panels, sets=nodes.sets(), last=nodes.loads[-1])


def _by_curves(table: Table) -> Iterator[Figure]:
    """Yield Figures 11 to 13, which turn on the curves, and the one of twenty jobs."""
    classes = learnt(mn4_curves)
    counts, fine = mn4_curves()[0].counts, np.linspace(1, 8, 29)
    panels = []
    for shape in SHAPES:
        own = [c for c in mn4_curves() if c.shape() == shape]
        parts = np.array([c.at(c.counts) / max(c.bandwidths) for c in own])
        regression = classes.polynomials[shape](fine).tolist()
        polynomial = Series(label="polynomial", x=fine.tolist(), y=regression)
        series = [_spread("measured", counts, parts), polynomial]
        title = f"{shape}: {len(own)} curves"
        panels.append(curves(title, "I/O nodes", PART, series, bottom=0, top=1.1))
    yield figure("figure-11", panels)

    nodes = Sweep(table, NODES)
    names = dict(zip(FIGURE_12, (T_CPU, BEST, "clairvoyant"), strict=True))
    slowdown = [
        curve(label, nodes.changes(SLOWDOWN, approximate(name), name), scale=100)
        for name, label in names.items()
    ]
    idle = [means(table, NODES, approximate(name), IDLE, label) for name, label in names.items()]
    y, lines = "change to exact curves (%)", {"the paper's 4%": 4.0}
    panels = [
        curves("Mean-I/O-SlowDown", LOAD, y, slowdown, lines=lines),
        curves("Machine-IdleTime", LOAD, IDLE_PART, idle),
    ]
    yield figure("figure-12", panels, sets=nodes.sets())

    synthetic = ost_curves()
    parts = np.array([one.bandwidths for one in synthetic])
    parts /= parts.max(axis=1, keepdims=True)
    series = [_spread("synthetic", synthetic[0].counts, parts)]
    title = f"{len(synthetic)} synthetic curves"
    drawn = curves(title, "storage targets", PART, series, bottom=0, top=1.1)
    targets = Sweep(table, OST)
    yield figure("figure-13", [drawn, *_both_metrics(targets)], sets=targets.sets())
    if table.points(OST_MEASURED):
        measured = Sweep(table, OST_MEASURED)
        yield figure("figure-13-measured", _both_metrics(measured), sets=measured.sets())
    for jobs, scenario in BY_JOBS.items():
        if jobs != JOBS:
            sweep = Sweep(table, scenario)
            panels = _both_metrics(sweep)
            yield figure("jobs", panels, name=scenario, sets=sweep.sets(jobs), jobs=jobs)


def _spread(label: str, counts: tuple[int, ...], parts: Floats) -> Series:
    low, high = np.percentile(parts, [10, 90], axis=0)
    y = parts.mean(axis=0).tolist()
    return Series(label=label, x=counts, y=y, low=low.tolist(), high=high.tolist())


def _both_metrics(sweep: Sweep) -> list[Curves]:
    """Return the slowdown and the idle time of the paper's allocators over the load."""
    slowdown, idle = (
        [sweep.percentiles(name, metric, name) for name in PAPER] for metric in (SLOWDOWN, IDLE)
    )
    return [
        curves(NAMES[SLOWDOWN], LOAD, NAMES[SLOWDOWN], slowdown, log_y=True),
        curves(NAMES[IDLE], LOAD, IDLE_PART, idle),
    ]
