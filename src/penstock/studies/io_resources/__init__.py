"""The evaluation of paper io-resources, re-run and extended.

Bandet, Boito and Pallez, "Scheduling distributed I/O resources in HPC systems", 2024
(hal-04394004v1).
"""

from functools import partial

from penstock.campaign.cells import Cell, Results, every
from penstock.campaign.sizes import Size
from penstock.report.findings import Basis, Findings
from penstock.studies.io_resources import (
    balance,
    machine,
    ours,
    robustness,
    scenarios,
    slowdown,
    targets,
)
from penstock.studies.io_resources.figures import figures
from penstock.studies.study import Study
from penstock.studies.table import Table

VERSION = 2


def cells_of(size: Size) -> list[Cell]:
    """Return the cells at the paper's size or a smaller one."""
    return [
        cell
        for name, scenario in scenarios.SCENARIOS.items()
        for cell in every(name, scenario.points(size), scenario.sets[size])
    ]


def findings(results: Results) -> Findings:
    """Return the claims and figures."""
    table = Table(results.rows)
    claims = [
        *slowdown.claims(table),
        *balance.claims(table),
        *machine.claims(table),
        *robustness.claims(table),
        *targets.claims(table),
        *ours.claims(table),
    ]
    size = results.campaign.size
    sets = {name: scenario.sets[size] for name, scenario in scenarios.SCENARIOS.items()}
    return Findings(
        title="Scheduling distributed I/O resources, re-run",
        summary="Bandet, Boito and Pallez, Scheduling distributed I/O resources in HPC systems "
        "(2024, hal-04394004v1), evaluated again on an exact fluid simulator, and beyond. The "
        "bandwidth curves over I/O nodes were measured on MareNostrum 4 (Bez et al. 2020); "
        "those over storage targets are synthetic. All sets of jobs are synthetic; all results "
        "are simulated. Figures in brackets are 95% bootstrap intervals over sets.",
        claims=claims,
        figures=figures(table, results.seconds),
        basis=Basis(
            simulated="all results; sets of jobs, and curves over storage targets, are synthetic",
            measured="curves over I/O nodes, on MareNostrum 4 (Bez et al. 2020)",
        ),
        provenance=(
            ("sets a load", ", ".join(f"{name} {number}" for name, number in sets.items())),
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
