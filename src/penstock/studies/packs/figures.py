"""The figures of the study: the paper's Figures 5 to 8 and 10 to 15, and ours."""

from collections.abc import Sequence
from typing import Any

from penstock.report.findings import Curves, Dots, Figure, Series
from penstock.sim.generators.packs import TABLE_1
from penstock.studies.captions import load as captions_of
from penstock.studies.packs import orders
from penstock.studies.packs.io_nodes import PAPER
from penstock.studies.packs.ratios import (
    MAKESPAN,
    PACK_STRETCH,
    STRETCH,
    by_load,
    column,
    geometric,
    load_of,
    mean,
    ratios,
    relative,
)
from penstock.studies.packs.scenarios import (
    BACKFILL,
    DOMINANT,
    FIFO,
    FIRST_FIT,
    IO_NODES,
    LONGEST_REMAINING,
    NO_BARRIERS,
    ORDERS,
    S_1,
    S_ALPHA,
    SENSITIVITIES,
)
from penstock.studies.panels import curves, dots
from penstock.studies.table import Estimate, Floats, Table, curve

figure = captions_of("packs")

ALPHA = r"I/O load $\alpha$ (Eq. 6)"
BASE = "io-nodes-1"
OVER = "over first-fit's"
ONE = {"first-fit": 1.0}
LARGEST = "largest stretch (lower is better)"


def figures(table: Table) -> list[Figure]:
    """Return the study's figures in the paper's order, ours last."""
    return [
        _figure_5(table),
        _figure_7(table),
        _figures_10_and_11(table),
        _figures_12_and_13(table),
        _figure_14(table),
        _figure_15(table),
        _noise(table),
        _sensitivity(table),
        _beyond(table),
    ]


def _workloads(table: Table) -> str:
    count = len(load_of(table, BASE))
    return f"{count} synthetic workloads (6.2.2), simulated; bands are 95% bootstrap intervals."


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


def _by_batches(table: Table, metric: str, *, to_fifo: bool = False) -> list[Series]:
    def values(order: str) -> list[float]:
        points = orders.BATCHES
        return [float(table.values(orders.BATCHES_SCENARIO, x, order, metric)[0]) for x in points]

    base = values(FIFO) if to_fifo else [1.0] * len(orders.BATCHES)
    return [
        Series(
            label=order,
            x=orders.BATCHES,
            y=[value / one for value, one in zip(values(order), base, strict=True)],
        )
        for order in ORDERS
    ]


def _figure_5(table: Table) -> Figure:
    x, y = "iteration batches", "makespan over FIFO's (lower is better)"
    makespan = _by_batches(table, MAKESPAN, to_fifo=True)
    panels = [
        curves("Largest stretch", x, LARGEST, _by_batches(table, STRETCH), log_x=True),
        curves("Makespan relative to FIFO", x, y, makespan, log_x=True),
    ]
    return figure("figure-5", panels)


def _figure_7(table: Table) -> Figure:
    last = orders.BATCHES[-1]
    rows = {order: table.rows(orders.BATCHES_SCENARIO, last, order)[0] for order in ORDERS}

    def stretches(k: int) -> dict[str, float]:
        return {order: float(rows[order][f"stretch_{k}"] or 0) for order in ORDERS}

    def panel(k: int) -> Dots:
        compute, io, _ = TABLE_1[k - 1]
        title = f"Application {k}: {compute:g} s, then {io:g} s of I/O"
        return dots(title, {o: Estimate(value=v, low=v, high=v) for o, v in stretches(k).items()})

    one = stretches(1)
    alike = max(abs(one[order] - stretches(k)[order]) for k in (2, 5) for order in ORDERS)
    return figure("figure-7", [panel(k) for k in (1, 3, 4)], last=last, alike=alike)


def _figures_10_and_11(table: Table) -> Figure:
    policies = (S_1, S_ALPHA, LONGEST_REMAINING)
    panels = [
        _relative(table, "Makespan", MAKESPAN, policies),
        _relative(table, "Stretch", PACK_STRETCH, policies, bottom=0),
    ]
    return figure("figure-10", panels, workloads=_workloads(table))


def _figures_12_and_13(table: Table) -> Figure:
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
    return figure("figure-12", panels, workloads=_workloads(table))


def _figure_14(table: Table) -> Figure:
    base = column(table, BASE, FIRST_FIT, MAKESPAN)
    policies = (FIRST_FIT, S_1, S_ALPHA, BACKFILL, NO_BARRIERS, DOMINANT)

    def part(policy: str, what: str) -> Floats:
        own = column(table, BASE, policy, MAKESPAN) / base
        return own if what == MAKESPAN else own * column(table, BASE, policy, what)

    titles = {"delayed": "Delayed by I/O", "idle": "Idle", MAKESPAN: "All node time"}
    panels = [
        dots(title, {policy: mean(part(policy, what)) for policy in policies})
        for what, title in titles.items()
    ]
    useful = part(FIRST_FIT, "executing").mean()
    return figure("figure-14", panels, first_fit=useful, workloads=_workloads(table))


def _figure_15(table: Table) -> Figure:
    policies = (S_1, DOMINANT)
    means = [
        curve(p, {r: relative(table, f"io-nodes-{r}", MAKESPAN, p) for r in IO_NODES})
        for p in policies
    ]
    paper = Series(label="the paper", x=list(PAPER), y=list(PAPER.values()))
    by_nodes = [
        _relative(
            table,
            f"{r} I/O node{'s' if r > 1 else ''}",
            MAKESPAN,
            policies,
            f"io-nodes-{r}",
            bottom=0,
        )
        for r in PAPER
    ]
    whole = curves("All workloads", "I/O nodes", OVER, [*means, paper], lines=ONE, bottom=0)
    return figure("figure-15", [whole, *by_nodes], columns=2, workloads=_workloads(table))


def _noise(table: Table) -> Figure:
    scenario = orders.NOISE_SCENARIO
    points = table.points(scenario)
    series = [
        curve(o, {100 * x: mean(table.values(scenario, x, o, STRETCH)) for x in points})
        for o in ORDERS
    ]
    panel = curves("Largest stretch", "noise of the phases (%)", LARGEST, series)
    return figure("noise", [panel], count=len(table.rows(scenario, points[0], FIFO)))


def _sensitivity(table: Table) -> Figure:
    def panel(title: str, r: int, metric: str) -> Curves:
        def over_first_fit(policy: str, s: float) -> Estimate:
            scenario = f"sensitivity-{r}"
            over, under = (table.values(scenario, s, p, metric) for p in (policy, FIRST_FIT))
            return geometric(over / under)

        series = [
            curve(policy, {s: over_first_fit(policy, s) for s in SENSITIVITIES})
            for policy in (S_1, DOMINANT)
        ]
        return curves(title, "sensitivity S", OVER, series, lines=ONE, log_x=True)

    panels = [
        panel("Makespan, 1 I/O node", 1, MAKESPAN),
        panel("Makespan, 3 I/O nodes", 3, MAKESPAN),
        panel("Largest stretch", 1, STRETCH),
    ]
    count = len(table.rows("sensitivity-1", SENSITIVITIES[0], FIRST_FIT))
    return figure("sensitivity", panels, count=count)


def _beyond(table: Table) -> Figure:
    policies = (S_1, BACKFILL, NO_BARRIERS, DOMINANT)
    panels = [
        _relative(table, "Makespan, 1 I/O node", MAKESPAN, policies),
        _relative(table, "Makespan, 3 I/O nodes", MAKESPAN, policies, "io-nodes-3"),
        _relative(table, "Largest stretch, 1 I/O node", STRETCH, policies, log_y=True),
    ]
    return figure("beyond", panels, workloads=_workloads(table))
