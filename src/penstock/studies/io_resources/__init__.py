"""The evaluation of paper io-resources, re-run and extended.

Bandet, Boito and Pallez, "Scheduling distributed I/O resources in HPC systems", 2024
(hal-04394004v1).
"""

from functools import partial

from penstock.campaign.cells import Cell, Results, every
from penstock.campaign.sizes import Size
from penstock.report.findings import Findings
from penstock.studies.io_resources import performance, robustness, scenarios, search
from penstock.studies.io_resources.figures import figures
from penstock.studies.study import Study
from penstock.studies.table import Table
from penstock.studies.texts import findings_of

VERSION = 4


def cells_of(size: Size) -> list[Cell]:
    """Return the cells at the paper's size or a smaller one."""
    return [
        cell
        for name, scenario in scenarios.SCENARIOS.items()
        if scenario.at_hand()
        for cell in every(name, scenario.points(size), scenario.sets[size])
    ]


def findings(results: Results) -> Findings:
    """Return the claims and figures."""
    table, size = Table(results.rows), results.campaign.size
    run = {name: one for name, one in scenarios.SCENARIOS.items() if table.points(name)}
    sets = "; ".join(f"{name}: {one.sets[size]}" for name, one in run.items())
    return findings_of(
        "io-resources",
        claims=[*performance.claims(table), *robustness.claims(table), *search.claims(table)],
        figures=figures(table, results.seconds),
        provenance=(
            ("sets a load", sets),
            ("setting", "20 resources, 480 compute nodes, 40 jobs (our choice of K)"),
            ("counts", "1 to 8, between measured ones interpolated; no direct access"),
            ("search", f"{scenarios.BUDGET[size]} simulations a search"),
        ),
    )


STUDY = Study(
    name="io-resources",
    title="Scheduling distributed I/O resources (Bandet et al., 2024): Figures 5-13, and beyond",
    version=VERSION,
    cells=cells_of,
    run_cell=lambda size, seed: partial(
        scenarios.run_cell, seed=seed, budget=scenarios.BUDGET[size]
    ),
    findings=findings,
)
