"""The figures of the study, as records for a report to draw."""

from collections.abc import Sequence
from typing import Any

from penstock.report.findings import Curves, Dots, Figure, Reference, Series
from penstock.sim.generators.packs import TABLE_1
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
from penstock.studies.table import Floats, Table, curve

ALPHA = r"I/O load $\alpha$ (Eq. 6)"
BASE = "io-nodes-1"
OVER = "over first-fit's"
ONE = Reference(y=1.0, label="first-fit")


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


def _drawn(table: Table, scenario: str = BASE) -> str:
    return (
        f"{len(load_of(table, scenario))} synthetic workloads (6.2.2), simulated; bands are 95% "
        "bootstrap intervals."
    )


def _over_load(
    table: Table, metric: str, policies: Sequence[str], scenario: str = BASE
) -> list[Series]:
    alpha = load_of(table, scenario)
    return [curve(p, by_load(alpha, ratios(table, scenario, metric, p))) for p in policies]


def _relative(
    table: Table,
    title: str,
    metric: str,
    policies: Sequence[str],
    scenario: str = BASE,
    **options: Any,
) -> Curves:
    """Return a metric over first-fit's, by load."""
    found = _over_load(table, metric, policies, scenario)
    return Curves(title=title, x=ALPHA, y=OVER, series=found, references=[ONE], **options)


def _by_batches(table: Table, metric: str, *, to_fifo: bool = False) -> list[Series]:
    scenario = orders.BATCHES_SCENARIO
    found = []
    for order in ORDERS:
        values = [table.values(scenario, x, order, metric)[0] for x in orders.BATCHES]
        base = [table.values(scenario, x, FIFO, metric)[0] for x in orders.BATCHES]
        y = [float(v / b) if to_fifo else float(v) for v, b in zip(values, base, strict=True)]
        found.append(Series(label=order, x=orders.BATCHES, y=y))
    return found


def _figure_5(table: Table) -> Figure:
    return Figure(
        name="figure-5",
        title="Figures 5, 6 and 8: eight list orders on the workload of Table 1",
        caption="The paper's Figures 5, 6 and 8, simulated: five applications that do a quarter of "
        "their time I/O, released together, each with 1 to 64 times its iterations. "
        "exclusive-fcfs is FIFO. Deterministic; several orders lie on one another.",
        panels=[
            Curves(
                title="Largest stretch",
                x="iteration batches",
                y="largest stretch (lower is better)",
                series=_by_batches(table, "max_stretch"),
                log_x=True,
            ),
            Curves(
                title="Makespan relative to FIFO",
                x="iteration batches",
                y="makespan over FIFO's (lower is better)",
                series=_by_batches(table, "makespan", to_fifo=True),
                log_x=True,
            ),
        ],
    )


def _figure_7(table: Table) -> Figure:
    last = orders.BATCHES[-1]
    rows = {order: table.rows(orders.BATCHES_SCENARIO, last, order)[0] for order in ORDERS}

    def stretches(k: int) -> list[float]:
        return [float(rows[order][f"stretch_{k}"] or 0) for order in ORDERS]

    def panel(k: int) -> Dots:
        found = stretches(k)
        compute, io, _ = TABLE_1[k - 1]
        title = f"Application {k}: {compute:g} s, then {io:g} s of I/O"
        return Dots(title=title, labels=ORDERS, value=found, low=found, high=found, better="lower")

    alike = max(
        abs(one - other)
        for k in (2, 5)
        for one, other in zip(stretches(1), stretches(k), strict=True)
    )
    return Figure(
        name="figure-7",
        title="Figure 7: who is delayed",
        caption=f"The paper's Figure 7, simulated, after {last} batches: the stretch of "
        "applications of Table 1 under each list order. Applications 2 and 5 fare as application 1 "
        f"to within {alike:.1g}. Deterministic.",
        panels=[panel(k) for k in (1, 3, 4)],
    )


def _figures_10_and_11(table: Table) -> Figure:
    policies = (S_1, S_ALPHA, LONGEST_REMAINING)
    return Figure(
        name="figure-10",
        title="Figures 10 and 11: packs by Algorithm 1, one I/O node",
        caption="The paper's Figures 10 and 11: makespan, and the mean of the packs' largest "
        f"stretch, relative to first-fit's. {_drawn(table)}",
        panels=[
            _relative(table, "Makespan", MAKESPAN, policies),
            _relative(table, "Stretch", PACK_STRETCH, policies, bottom=0),
        ],
    )


def _figures_12_and_13(table: Table) -> Figure:
    alpha = load_of(table, BASE)
    overrun = [
        curve(p, by_load(alpha, column(table, BASE, p, "overrun"), geometric))
        for p in (FIRST_FIT, S_1, S_ALPHA)
    ]
    return Figure(
        name="figure-12",
        title="Figures 12 and 13: number of packs, and time lost to contention",
        caption="The paper's Figures 12 and 13: packs relative to first-fit's, and the makespan "
        f"over the contention-free one. {_drawn(table)}",
        panels=[
            Curves(
                title="Number of packs",
                x=ALPHA,
                y=OVER,
                series=_over_load(table, "packs", (S_1, S_ALPHA)),
                references=[ONE],
            ),
            Curves(
                title="Makespan over contention-free",
                x=ALPHA,
                y="ratio (lower is better)",
                series=overrun,
                references=[Reference(y=1.2, label="20% longer")],
                log_y=True,
            ),
        ],
    )


def _figure_14(table: Table) -> Figure:
    base = column(table, BASE, FIRST_FIT, MAKESPAN)
    policies = (FIRST_FIT, S_1, S_ALPHA, BACKFILL, NO_BARRIERS, DOMINANT)

    def part(policy: str, what: str) -> Floats:
        own = column(table, BASE, policy, MAKESPAN) / base
        return own if what == MAKESPAN else own * column(table, BASE, policy, what)

    def panel(title: str, what: str) -> Dots:
        parts = [mean(part(policy, what)) for policy in policies]
        return Dots(
            title=title,
            labels=policies,
            value=[e.value for e in parts],
            low=[e.low for e in parts],
            high=[e.high for e in parts],
            better="lower",
        )

    return Figure(
        name="figure-14",
        title="Figure 14: where node time goes, one I/O node",
        caption="The paper's Figure 14, and our packers beside it: node time waiting for I/O, "
        "without a job, and in all, as parts of first-fit's node time on the same workload. Useful "
        f"execution, the rest, is {part(FIRST_FIT, 'executing').mean():.2f} for everyone. "
        f"{_drawn(table)}",
        panels=[
            panel("Delayed by I/O", "delayed"),
            panel("Idle", "idle"),
            panel("All node time", MAKESPAN),
        ],
    )


def _figure_15(table: Table) -> Figure:
    policies = (S_1, DOMINANT)
    means = [
        curve(p, {r: relative(table, f"io-nodes-{r}", MAKESPAN, p) for r in IO_NODES})
        for p in policies
    ]
    paper = Series(label="the paper", x=list(PAPER), y=list(PAPER.values()))

    def panel(r: int) -> Curves:
        return Curves(
            title=f"{r} I/O node{'s' if r > 1 else ''}",
            x=ALPHA,
            y=OVER,
            series=_over_load(table, MAKESPAN, policies, f"io-nodes-{r}"),
            references=[ONE],
            bottom=0,
        )

    return Figure(
        name="figure-15",
        title="Figure 15: makespan behind several I/O nodes",
        caption="The paper's Figure 15 (pack-partition, S = 1), and dominant-share, ours: the "
        "makespan relative to first-fit's behind as many I/O nodes; first as geometric means over "
        f"all workloads, then over the load. {_drawn(table)}",
        panels=[
            Curves(
                title="All workloads",
                x="I/O nodes",
                y=OVER,
                series=[*means, paper],
                references=[ONE],
                bottom=0,
            ),
            *(panel(r) for r in PAPER),
        ],
        columns=2,
    )


def _noise(table: Table) -> Figure:
    scenario = orders.NOISE_SCENARIO
    points = table.points(scenario)
    series = [
        curve(o, {100 * x: mean(table.values(scenario, x, o, "max_stretch")) for x in points})
        for o in ORDERS
    ]
    workloads = len(table.rows(scenario, points[0], FIFO))
    return Figure(
        name="noise",
        title="Beyond the paper: list orders on a noisy machine",
        caption="Table 1, four batches, each phase off by up to so many per cent; "
        f"{workloads} synthetic workloads a point, simulated; bands are 95% bootstrap intervals.",
        panels=[
            Curves(
                title="Largest stretch",
                x="noise of the phases (%)",
                y="largest stretch (lower is better)",
                series=series,
            )
        ],
    )


def _sensitivity(table: Table) -> Figure:
    def panel(title: str, r: int, metric: str) -> Curves:
        scenario = f"sensitivity-{r}"
        series = []
        for policy in (S_1, DOMINANT):
            by_point = {}
            for s in SENSITIVITIES:
                over, under = (table.values(scenario, s, p, metric) for p in (policy, FIRST_FIT))
                by_point[s] = geometric(over / under)
            series.append(curve(policy, by_point))
        return Curves(
            title=title, x="sensitivity S", y=OVER, series=series, references=[ONE], log_x=True
        )

    count = len(table.rows("sensitivity-1", SENSITIVITIES[0], FIRST_FIT))
    return Figure(
        name="sensitivity",
        title="Beyond the paper: any sensitivity S",
        caption="Makespan and the largest stretch of all jobs, relative to first-fit's, as S "
        f"loosens. {count} synthetic workloads a point over all alpha, simulated; bands are 95% "
        "bootstrap intervals.",
        panels=[
            panel("Makespan, 1 I/O node", 1, MAKESPAN),
            panel("Makespan, 3 I/O nodes", 3, MAKESPAN),
            panel("Largest stretch", 1, STRETCH),
        ],
    )


def _beyond(table: Table) -> Figure:
    policies = (S_1, BACKFILL, NO_BARRIERS, DOMINANT)
    return Figure(
        name="beyond",
        title="Beyond the paper: backfilling, no barriers, and I/O bounded at every moment",
        caption="Makespan behind one and behind three I/O nodes, and the largest stretch of all "
        "jobs behind one, relative to first-fit's; S = 1, for dominant-share 2. "
        f"{_drawn(table)}",
        panels=[
            _relative(table, "Makespan, 1 I/O node", MAKESPAN, policies),
            _relative(table, "Makespan, 3 I/O nodes", MAKESPAN, policies, "io-nodes-3"),
            _relative(table, "Largest stretch, 1 I/O node", STRETCH, policies, log_y=True),
        ],
    )
