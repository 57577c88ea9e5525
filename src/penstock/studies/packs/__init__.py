"""The evaluation of paper packs, re-run and extended.

Carretero, Jeannot, Pallez, Singh and Vidal, "Mapping and scheduling HPC applications for optimizing
I/O", ICS 2020.
"""

from functools import partial

from penstock.campaign.cells import Cell, Results, every
from penstock.campaign.journal import Value
from penstock.campaign.sizes import Size
from penstock.report.findings import Findings
from penstock.sim.generators.packs import PARTITION
from penstock.studies.packs import io_nodes, mapping, orders, scenarios
from penstock.studies.packs.figures import figures
from penstock.studies.study import Study
from penstock.studies.table import Table
from penstock.studies.texts import findings_of

VERSION = 4


def run_cell(cell: Cell, *, seed: int) -> list[dict[str, Value]]:
    """Run one cell of the study."""
    if cell.scenario in scenarios.SCENARIOS:
        return scenarios.run_cell(cell, seed=seed)
    return orders.run_cell(cell, seed=seed)


def cells_of(size: Size) -> list[Cell]:
    """Return the cells at the paper's size or a smaller one."""
    cells = list(every(orders.BATCHES_SCENARIO, orders.BATCHES, 1))
    cells += every(orders.NOISE_SCENARIO, orders.NOISES, orders.NOISY_WORKLOADS[size])
    for name, scenario in scenarios.SCENARIOS.items():
        cells += every(name, scenario.points_of(size), scenario.workloads[size])
    return cells


def findings(results: Results) -> Findings:
    """Return the claims and figures."""
    table = Table(results.rows)
    size = results.campaign.size
    one = scenarios.SCENARIOS["io-nodes-1"]
    workloads, loads = one.workloads[size], len(one.points_of(size))
    return findings_of(
        "packs",
        claims=[*orders.claims(table), *mapping.claims(table), *io_nodes.claims(table)],
        figures=figures(table),
        provenance=(
            ("workloads", f"{workloads} for each of {loads} alpha_gen from 0.5 to 10"),
            ("partition", f"{PARTITION} compute nodes behind each I/O node"),
            ("list order", "FIFO (exclusive-fcfs) unless said otherwise"),
        ),
    )


STUDY = Study(
    name="packs",
    title="Packs (Carretero et al., ICS 2020): Figures 5-8, 10-15, Table 1, and beyond",
    version=VERSION,
    cells=cells_of,
    run_cell=lambda _, seed: partial(run_cell, seed=seed),
    findings=findings,
)
