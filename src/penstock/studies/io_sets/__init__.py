"""The evaluation of paper io-sets, re-run and extended.

Boito, Pallez, Teylo and Vidal, "IO-SETS: Simple and efficient approaches for I/O bandwidth
management", IEEE TPDS 34(10), 2023.
"""

from functools import partial

from penstock.campaign.cells import Cell, Results, every
from penstock.campaign.journal import Value
from penstock.campaign.sizes import Size
from penstock.report.findings import Findings
from penstock.studies.io_sets import (
    effectiveness,
    loads,
    motivation,
    practice,
    rivals,
    robustness,
    scenarios,
)
from penstock.studies.io_sets.figures import figures, tables
from penstock.studies.study import Study
from penstock.studies.table import Table
from penstock.studies.texts import findings_of

VERSION = 5


def run_cell(cell: Cell, *, seed: int) -> list[dict[str, Value]]:
    """Run one cell of the study."""
    if cell.scenario in (motivation.SCENARIO, motivation.WEIGHED):
        return motivation.run_cell(cell)
    if cell.scenario in practice.RELEASES:
        return practice.run_cell(cell, seed=seed)
    return scenarios.run_cell(cell, seed=seed)


def cells_of(size: Size) -> list[Cell]:
    """Return the cells at the paper's size or a smaller one."""
    pairs = (motivation.TWO_LARGE, motivation.LARGE_AND_SMALL)
    cells = list(every(motivation.SCENARIO, pairs, 1))
    cells += every(motivation.WEIGHED, motivation.WEIGHTS, 1)
    cells += practice.cells_of(size)
    for name, scenario in scenarios.SCENARIOS.items():
        cells += every(name, scenario.points(size), scenario.workloads[size])
    return cells


def findings(results: Results) -> Findings:
    """Return the claims and figures."""
    table = Table(results.rows)
    workloads = scenarios.SCENARIOS["figure-6"].workloads[results.campaign.size]
    return findings_of(
        "io-sets",
        claims=[
            *motivation.claims(table),
            *practice.claims(table),
            *effectiveness.claims(table, results.seconds),
            *loads.claims(table),
            *robustness.claims(table),
            *rivals.claims(table),
        ],
        tables=tables(table),
        figures=figures(table),
        provenance=(
            ("workloads a point", f"{workloads} (half of that for the rivals at full size)"),
            ("gain", "Utilization: ours / other - 1; others: other / ours - 1"),
        ),
    )


STUDY = Study(
    name="io-sets",
    title="IO-SETS (Boito et al., TPDS 2023): Figures 4, 6-10, their variants, and beyond",
    version=VERSION,
    cells=cells_of,
    run_cell=lambda _, seed: partial(run_cell, seed=seed),
    findings=findings,
)
