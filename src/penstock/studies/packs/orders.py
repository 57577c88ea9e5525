"""Paper packs, Section 6.1: eight list orders on five applications (Table 1, Figures 5 to 8)."""

from collections.abc import Mapping

import numpy as np

from penstock import registry
from penstock.campaign.cells import Cell
from penstock.campaign.journal import Value
from penstock.campaign.sizes import Size
from penstock.report.findings import Claim
from penstock.sim.engine import simulate
from penstock.sim.generators.packs import TABLE_1, table_1
from penstock.studies.claims import load as claims_of
from penstock.studies.packs.scenarios import FIFO, ORDERS
from penstock.studies.table import Table

claim = claims_of("packs")

BATCHES_SCENARIO, NOISE_SCENARIO = "table-1", "table-1-noise"
BATCHES = (1, 2, 4, 8, 16, 32, 64)
NOISES = (0.0, 0.01, 0.05, 0.1, 0.2)
NOISY_WORKLOADS: Mapping[Size, int] = {"full": 20, "fast": 5, "quick": 2}
NOISY_BATCHES = 4
APPLICATIONS = range(1, len(TABLE_1) + 1)
WORST = ("longest-io", "shortest-remaining")
FAIR = ("worst-stretch", "lowest-io-ratio")
BALANCED = ("worst-stretch", "shortest-io", "longest-remaining")


def run_cell(cell: Cell, *, seed: int) -> list[dict[str, Value]]:
    """Return a row for every list order."""
    if cell.scenario == BATCHES_SCENARIO:
        workload = table_1(int(cell.x))
    else:
        drawn = (seed, 1, cell.workload)
        workload = table_1(NOISY_BATCHES, noise=cell.x, seed=drawn)
    rows = []
    for order in ORDERS:
        run = simulate(workload, registry.sharing(order))
        stretch = (run.finish - run.start) / workload.work
        row: dict[str, Value] = {
            "scenario": cell.scenario,
            "x": cell.x,
            "workload": cell.workload,
            "policy": order,
            "makespan": run.makespan,
            "max_stretch": float(stretch.max()),
            # No schedule ends before its longest job, nor before all I/O is done.
            "bound": max(float(workload.work.max()), float(workload.io.sum())),
        }
        rows.append(row | {f"stretch_{k}": float(s) for k, s in enumerate(stretch, start=1)})
    return rows


def claims(table: Table) -> list[Claim]:
    """Return the claims on the list orders."""
    return [
        _table_1(),
        _steady(table),
        _starved(table),
        _sensitive(table),
        *_against_fifo(table),
        _fifo_most_effective(table),
        _noise(table),
    ]


def _stretch(table: Table, order: str, x: float = BATCHES[-1]) -> float:
    return float(table.values(BATCHES_SCENARIO, x, order, "max_stretch")[0])


def _makespan(table: Table, order: str, x: float = BATCHES[-1]) -> float:
    """Return the makespan relative to FIFO's."""
    one, fifo = (table.values(BATCHES_SCENARIO, x, o, "makespan")[0] for o in (order, FIFO))
    return float(one / fifo)


def _table_1() -> Claim:
    work = sorted(set(table_1().work.tolist()))
    return claim(
        "table-1-total-execution-load", ", ".join(f"{w:,.0f} s" for w in work), len(work) == 1
    )


def _steady(table: Table) -> Claim:
    changes = {
        order: abs(_stretch(table, order) / _stretch(table, order, 32) - 1) for order in ORDERS
    }
    worst = max(changes, key=lambda order: changes[order])
    return claim(
        "fig-7-after-some-iterations",
        f"from 32 to 64 batches the largest change is {100 * changes[worst]:.3f}% ({worst})",
        changes[worst] < 0.01,
    )


def _starved(table: Table) -> Claim:
    row = table.rows(BATCHES_SCENARIO, BATCHES[-1], "shortest-remaining")[0]
    stretches = [float(row[f"stretch_{k}"] or 0) for k in APPLICATIONS]
    return claim(
        "6-1-2-starvation-leaves-some",
        f"{min(stretches):.2f} to {max(stretches):.2f} (shortest-remaining)",
        min(stretches) < 1.1 and abs(max(stretches) - 1.8) <= 0.05,
    )


def _sensitive(table: Table) -> Claim:
    worst = {}
    for order in ORDERS:
        row = table.rows(BATCHES_SCENARIO, BATCHES[-1], order)[0]
        worst[order] = max(APPLICATIONS, key=lambda k: float(row[f"stretch_{k}"] or 0))
    return claim(
        "6-1-2-applications-3-4",
        f"under {sum(k in (3, 4) for k in worst.values())} of {len(ORDERS)} orders",
        all(k in (3, 4) for k in worst.values()),
    )


def _against_fifo(table: Table) -> list[Claim]:
    fifo = _stretch(table, FIFO)
    worst_two = all(
        set(sorted(ORDERS, key=lambda order: -_stretch(table, order, x))[:2]) == set(WORST)
        for x in BATCHES
    )
    fair = {order: _stretch(table, order) for order in FAIR}
    balanced = {order: _makespan(table, order) for order in BALANCED}
    poor = {order: _makespan(table, order) for order in WORST}
    return [
        claim(
            "fig-5-longest-io-shortest",
            ", ".join(f"{order} {_stretch(table, order):.3f}" for order in WORST)
            + f", FIFO {fifo:.3f}",
            worst_two,
        ),
        claim(
            "fig-5-serving-worst-stretch",
            ", ".join(f"{order} {value:.3f}" for order, value in fair.items())
            + f", FIFO {fifo:.3f}",
            all(_stretch(table, o, x) < _stretch(table, FIFO, x) for o in FAIR for x in BATCHES),
        ),
        claim(
            "figs-6-and-8-worst-stretch-shortest",
            ", ".join(f"{order} {value:.3f}" for order, value in balanced.items()) + " of FIFO",
            all(_makespan(table, o, x) < 1 for o in BALANCED for x in BATCHES),
        ),
        claim(
            "figs-6-and-8-longest-io-shortest",
            ", ".join(f"{order} {value:.3f}" for order, value in poor.items()) + " of FIFO",
            all(_makespan(table, o, x) > 1 for o in WORST for x in BATCHES),
        ),
    ]


def _fifo_most_effective(table: Table) -> Claim:
    better = [o for o in ORDERS if o != FIFO and _stretch(table, o) < _stretch(table, FIFO)]
    return claim(
        "6-2-3-fifo-was-hown",
        f"{len(better)} of the 7 others have a lower largest stretch and makespan: "
        + ", ".join(f"{o} {_stretch(table, o):.3f}" for o in better)
        + f"; FIFO {_stretch(table, FIFO):.3f}",
        not better,
    )


def _noise(table: Table) -> Claim:
    def order_of(x: float) -> list[str]:
        means = {
            o: float(np.mean(table.values(NOISE_SCENARIO, x, o, "max_stretch"))) for o in ORDERS
        }
        return sorted(ORDERS, key=lambda o: means[o])

    noisy = [x for x in table.points(NOISE_SCENARIO) if x > 0]
    ranks = {x: order_of(x) for x in noisy}
    worst_two = all(set(rank[-2:]) == set(WORST) for rank in ranks.values())
    fair = all(rank.index(order) < rank.index(FIFO) for rank in ranks.values() for order in FAIR)
    best = ", ".join(f"{rank[0]} at {100 * x:g}%" for x, rank in ranks.items())
    return claim(
        "ours-noise-phases-leaves",
        f"worst two the same: {'yes' if worst_two else 'no'}; fair ones ahead: "
        f"{'yes' if fair else 'no'}; the best is {best}",
        worst_two and fair,
    )
