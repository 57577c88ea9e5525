"""The figures of the study: the paper's Figures 5 to 8 and 10 to 15, and ours."""

from collections.abc import Iterator, Sequence
from typing import Any

from penstock.report.findings import Curves, Figure, Series
from penstock.sim.generators.packs import TABLE_1
from penstock.studies.packs import orders
from penstock.studies.packs.io_nodes import PAPER
from penstock.studies.packs.scenarios import (
    BACKFILL,
    BASE,
    DOMINANT,
    ERRORS,
    ESTIMATES,
    FIFO,
    FIRST_FIT,
    IO_NODES,
    LONGEST_REMAINING,
    MAKESPAN,
    NO_BARRIERS,
    ORDERS,
    PACK_STRETCH,
    S_1,
    S_ALPHA,
    SENSITIVITIES,
    STRETCH,
    at,
    by_load,
    column,
    geometric,
    load_of,
    mean,
    ratios,
    relative,
)
from penstock.studies.panels import curves, dots
from penstock.studies.table import Estimate, Floats, Table, curve
from penstock.studies.texts import captions_of

figure = captions_of("packs")

ALPHA = r"I/O load $\alpha$ (Eq. 6)"
OVER = "over first-fit's"
ONE = {"first-fit": 1.0}
LARGEST = "largest stretch (lower is better)"


def figures(table: Table) -> Iterator[Figure]:
    """Return the study's figures in the paper's order, ours last."""
    workloads = (
        f"{len(load_of(table, BASE))} synthetic workloads (6.2.2), simulated; bands are 95% "
        "bootstrap intervals."
    )
    yield from _orders(table)
    yield from _one_io_node(table, workloads)
    yield _figure_15(table, workloads)
    yield from _beyond(table, workloads)


def _relative(
    table: Table,
    title: str,
    metric: str,
    policies: Sequence[str],
    scenario: str = BASE,
    **options: Any,
) -> Curves:
    """Return a metric over first-fit's, by load."""
    alpha = load_of(table, scenario)
    series = [curve(p, by_load(alpha, ratios(table, scenario, metric, p))) for p in policies]
    return curves(title, ALPHA, OVER, series, lines=ONE, **options)


def _orders(table: Table) -> Iterator[Figure]:
    """Yield Figures 5 to 8."""
    batches, last = orders.BATCHES, orders.BATCHES[-1]

    def by_batches(metric: str) -> dict[str, Floats]:
        return {o: table.grid(orders.BATCHES_SCENARIO, o, metric, batches)[0] for o in ORDERS}

    makespan = by_batches(MAKESPAN)
    stretch, relative_to_fifo = (
        [Series(label=order, x=batches, y=y.tolist()) for order, y in values.items()]
        for values in (by_batches(STRETCH), {o: y / makespan[FIFO] for o, y in makespan.items()})
    )
    x, y = "iteration batches", "makespan over FIFO's (lower is better)"
    panels = [
        curves("Largest stretch", x, LARGEST, stretch, log_x=True),
        curves("Makespan relative to FIFO", x, y, relative_to_fifo, log_x=True),
    ]
    yield figure("figure-5", panels)

    by_application = {
        k: {order: float(values[-1]) for order, values in by_batches(f"stretch_{k}").items()}
        for k in orders.APPLICATIONS
    }
    delayed = []
    for k in (1, 3, 4):
        compute, io, _ = TABLE_1[k - 1]
        title = f"Application {k}: {compute:g} s, then {io:g} s of I/O"
        values = {o: Estimate(value=v, low=v, high=v) for o, v in by_application[k].items()}
        delayed.append(dots(title, values))
    alike = max(
        abs(value - by_application[k][order])
        for order, value in by_application[1].items()
        for k in (2, 5)
    )
    yield figure("figure-7", delayed, last=last, alike=alike)


def _one_io_node(table: Table, workloads: str) -> Iterator[Figure]:
    """Yield Figures 10 to 14."""
    policies = (S_1, S_ALPHA, LONGEST_REMAINING)
    panels = [
        _relative(table, "Makespan", MAKESPAN, policies),
        _relative(table, "Stretch", PACK_STRETCH, policies, bottom=0),
    ]
    yield figure("figure-10", panels, workloads=workloads)

    alpha = load_of(table, BASE)
    overrun = [
        curve(p, by_load(alpha, column(table, BASE, p, "overrun"), geometric))
        for p in (FIRST_FIT, S_1, S_ALPHA)
    ]
    title, y = "Makespan over contention-free", "ratio (lower is better)"
    panels = [
        _relative(table, "Number of packs", "packs", (S_1, S_ALPHA)),
        curves(title, ALPHA, y, overrun, lines={"20% longer": 1.2}, log_y=True),
    ]
    yield figure("figure-12", panels, workloads=workloads)

    def part(policy: str, what: str) -> Floats:
        own = ratios(table, BASE, MAKESPAN, policy)
        return own if what == MAKESPAN else own * column(table, BASE, policy, what)

    contenders = (FIRST_FIT, S_1, S_ALPHA, BACKFILL, NO_BARRIERS, DOMINANT)
    titles = {"delayed": "Delayed by I/O", "idle": "Idle", MAKESPAN: "All node time"}
    node_time = [
        dots(title, {policy: mean(part(policy, what)) for policy in contenders})
        for what, title in titles.items()
    ]
    useful = part(FIRST_FIT, "executing").mean()
    yield figure("figure-14", node_time, first_fit=useful, workloads=workloads)


def _figure_15(table: Table, workloads: str) -> Figure:
    policies = (S_1, DOMINANT)
    means = [
        curve(p, {r: relative(table, f"io-nodes-{r}", MAKESPAN, p) for r in IO_NODES})
        for p in policies
    ]
    paper = Series(label="the paper", x=list(PAPER), y=list(PAPER.values()))
    panels = [curves("All workloads", "I/O nodes", OVER, [*means, paper], lines=ONE, bottom=0)]
    for r in PAPER:
        title = f"{r} I/O node{'s' if r > 1 else ''}"
        panels.append(_relative(table, title, MAKESPAN, policies, f"io-nodes-{r}", bottom=0))
    return figure("figure-15", panels, columns=2, workloads=workloads)


def _beyond(table: Table, workloads: str) -> Iterator[Figure]:
    noise = orders.NOISE_SCENARIO
    points = table.points(noise)
    stretches = {o: {x: mean(table.values(noise, x, o, STRETCH)) for x in points} for o in ORDERS}
    series = [curve(o, {100 * x: e for x, e in of.items()}) for o, of in stretches.items()]
    panel = curves("Largest stretch", "noise of the phases (%)", LARGEST, series)
    yield figure("noise", [panel], count=len(table.rows(noise, points[0], FIFO)))

    panels = []
    for title, r, metric in (
        ("Makespan, 1 I/O node", 1, MAKESPAN),
        ("Makespan, 3 I/O nodes", 3, MAKESPAN),
        ("Largest stretch", 1, STRETCH),
    ):
        series = [
            curve(p, {s: at(table, f"sensitivity-{r}", s, metric, p) for s in SENSITIVITIES})
            for p in (S_1, DOMINANT)
        ]
        panels.append(curves(title, "sensitivity S", OVER, series, lines=ONE, log_x=True))
    count = len(table.rows("sensitivity-1", SENSITIVITIES[0], FIRST_FIT))
    yield figure("sensitivity", panels, count=count)

    panels = []
    for r in PAPER:
        series = [
            curve(p, {x: at(table, f"{ESTIMATES}-{r}", x, MAKESPAN, p) for x in ERRORS})
            for p in (S_1, DOMINANT)
        ]
        title = f"{r} I/O node{'s' if r > 1 else ''}"
        panels.append(curves(title, "factor of error", OVER, series, lines=ONE, bottom=0))
    count = len(table.rows(f"{ESTIMATES}-1", ERRORS[0], FIRST_FIT))
    yield figure("estimates", panels, count=count)

    policies = (S_1, BACKFILL, NO_BARRIERS, DOMINANT)
    panels = [
        _relative(table, "Makespan, 1 I/O node", MAKESPAN, policies),
        _relative(table, "Makespan, 3 I/O nodes", MAKESPAN, policies, "io-nodes-3"),
        _relative(table, "Largest stretch, 1 I/O node", STRETCH, policies, log_y=True),
    ]
    yield figure("beyond", panels, workloads=workloads)
