"""Paper packs, Section 6.1: eight list orders on five applications (Table 1, Figures 5 to 8)."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from penstock import registry
from penstock.campaign.cells import Cell
from penstock.campaign.journal import Value
from penstock.campaign.sizes import Size
from penstock.report.findings import Claim
from penstock.sim.engine import simulate
from penstock.sim.generators.packs import TABLE_1, table_1
from penstock.studies.packs.scenarios import FIFO, ORDERS, claim
from penstock.studies.table import Table, row
from penstock.studies.verdicts import at_limits, better_by

BATCHES_SCENARIO, NOISE_SCENARIO = "table-1", "table-1-noise"
BATCHES = (1, 2, 4, 8, 16, 32, 64)
NOISES = (0.0, 0.01, 0.05, 0.1, 0.2)
NOISY_WORKLOADS: Mapping[Size, int] = {"full": 40, "fast": 20, "quick": 2}
NOISY_BATCHES = 4
APPLICATIONS = range(1, len(TABLE_1) + 1)
WORST = ("longest-io", "shortest-remaining")
FAIR = ("worst-stretch", "lowest-io-ratio")
BALANCED = ("worst-stretch", "shortest-io", "longest-remaining")
STARVED = 1.8
"""The largest stretch of the paper's starved applications."""
EQUAL = 1.01
"""Stretches within one percent are alike."""


def run_cell(cell: Cell, *, seed: int) -> list[dict[str, Value]]:
    """Return a row for every list order."""
    if cell.scenario == BATCHES_SCENARIO:
        workload = table_1(int(cell.x))
    else:
        workload = table_1(NOISY_BATCHES, noise=cell.x, seed=(seed, 1, cell.workload))
    # No schedule ends before its longest job, nor before all I/O is done.
    bound = max(float(workload.work.max()), float(workload.io.sum()))
    rows = []
    for order in ORDERS:
        run = simulate(workload, registry.sharing(order))
        stretch = (run.finish - run.start) / workload.work
        metrics = {"makespan": run.makespan, "max_stretch": float(stretch.max()), "bound": bound}
        by_job = {f"stretch_{k}": float(s) for k, s in enumerate(stretch, start=1)}
        rows.append(row(cell, order, **metrics, **by_job))
    return rows


def claims(table: Table) -> Iterator[Claim]:
    """Return the claims on the list orders."""
    return chain(_stretches(table), _against_fifo(table), _noise(table))


def _stretch(table: Table, order: str, x: float = BATCHES[-1]) -> float:
    return float(table.values(BATCHES_SCENARIO, x, order, "max_stretch")[0])


def _makespan(table: Table, order: str, x: float = BATCHES[-1]) -> float:
    """Return the makespan relative to FIFO's."""
    one, fifo = (table.values(BATCHES_SCENARIO, x, o, "makespan")[0] for o in (order, FIFO))
    return float(one / fifo)


def _stretches(table: Table) -> Iterator[Claim]:
    work = sorted(set(table_1().work.tolist()))
    yield claim(
        "table-1-total-execution-load", ", ".join(f"{w:,.0f} s" for w in work), len(work) == 1
    )
    changes = {
        order: abs(_stretch(table, order) / _stretch(table, order, 32) - 1) for order in ORDERS
    }
    worst = max(changes, key=lambda order: changes[order])
    yield claim(
        "fig-7-after-some-iterations",
        f"from 32 to 64 batches the largest change is {changes[worst]:.3%} ({worst})",
        changes[worst] < 0.01,
    )
    last = {order: table.rows(BATCHES_SCENARIO, BATCHES[-1], order)[0] for order in ORDERS}
    by_order = {
        order: {k: float(row[f"stretch_{k}"] or 0) for k in APPLICATIONS}
        for order, row in last.items()
    }
    least, most = (f(by_order["shortest-remaining"].values()) for f in (min, max))
    readings = at_limits(lambda limit: least <= 1 + limit and round(most, 1) == STARVED)
    yield claim.over(
        "6-1-2-starvation-leaves-some",
        f"{least:.2f} to {most:.2f} (shortest-remaining)",
        readings,
        starved=STARVED,
    )
    others = {
        order: max(one[k] for k in APPLICATIONS if k not in (3, 4))
        for order, one in by_order.items()
    }
    both = sum(min(one[3], one[4]) > EQUAL * others[o] for o, one in by_order.items())
    either = sum(max(one[3], one[4]) > EQUAL * others[o] for o, one in by_order.items())
    behind = [o for o, one in by_order.items() if others[o] > EQUAL * max(one[3], one[4])]
    alike = sum(max(one.values()) <= EQUAL * min(one.values()) for one in by_order.values())
    readings = {
        "both above all others, under most orders": both > len(ORDERS) / 2,
        "one of them above all others, under most orders": either > len(ORDERS) / 2,
        "no other above them, under any order": not behind,
    }
    yield claim.over(
        "6-1-2-applications-3-4",
        f"both under {both} of {len(ORDERS)} orders, one of them under {either}; another under "
        f"{len(behind)}; {alike} treat all five alike",
        readings,
        alike=alike,
    )


def _against_fifo(table: Table) -> Iterator[Claim]:
    stretch = {order: _stretch(table, order) for order in ORDERS}
    makespan = {order: _makespan(table, order) for order in ORDERS}

    def listed(values: Mapping[str, float], orders: Iterable[str]) -> str:
        return ", ".join(f"{order} {values[order]:.3f}" for order in orders)

    fifo = f", FIFO {stretch[FIFO]:.3f}"
    bound = float(table.values(BATCHES_SCENARIO, 1, FIFO, "bound")[0]) / float(table_1().work[0])
    most = 100 * (1 - bound / stretch[FIFO])
    least = min(1 - _stretch(table, o, x) / _stretch(table, FIFO, x) for o in FAIR for x in BATCHES)
    yield claim(
        "fig-5-longest-io-shortest",
        listed(stretch, WORST) + fifo,
        all(
            set(sorted(ORDERS, key=lambda order: -_stretch(table, order, x))[:2]) == set(WORST)
            for x in BATCHES
        ),
    )
    yield claim.over(
        "fig-5-serving-worst-stretch",
        listed(stretch, FAIR) + fifo + f"; the least that one of them is lower: {least:.1%}",
        better_by(least),
        bound=bound,
        most=most,
    )
    shorter = min(1 - _makespan(table, o, x) for o in BALANCED for x in BATCHES)
    yield claim.over(
        "figs-6-and-8-worst-stretch-shortest",
        f"{listed(makespan, BALANCED)} of FIFO; the least that one is shorter: {shorter:.1%}",
        better_by(shorter),
        bound=bound,
        most=most,
    )
    yield claim(
        "figs-6-and-8-longest-io-shortest",
        listed(makespan, WORST) + " of FIFO",
        all(
            set(sorted(ORDERS, key=lambda order: -_makespan(table, order, x))[:2]) == set(WORST)
            for x in BATCHES
        ),
    )
    better = [order for order in ORDERS if stretch[order] < stretch[FIFO]]
    yield claim(
        "6-2-3-fifo-was-hown",
        f"{len(better)} of the 7 others have a lower largest stretch and makespan: "
        f"{listed(stretch, better)}; FIFO {stretch[FIFO]:.3f}",
        not better,
    )


def _noise(table: Table) -> Iterator[Claim]:
    ranks = {
        x: sorted(ORDERS, key=lambda o: table.values(NOISE_SCENARIO, x, o, "max_stretch").mean())
        for x in table.points(NOISE_SCENARIO)
        if x > 0
    }
    worst_two = all(set(rank[-2:]) == set(WORST) for rank in ranks.values())
    fair = all(rank.index(order) < rank.index(FIFO) for rank in ranks.values() for order in FAIR)
    best = ", ".join(f"{rank[0]} at {100 * x:g}%" for x, rank in ranks.items())
    yield claim(
        "ours-noise-phases-leaves",
        f"worst two the same: {'yes' if worst_two else 'no'}; fair ones ahead: "
        f"{'yes' if fair else 'no'}; the best is {best}",
        worst_two and fair,
    )
