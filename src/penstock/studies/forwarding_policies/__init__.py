"""The arbitration study of paper forwarding, Chapter 5, re-run from the measured curves.

J. L. Bez, "Dynamic Tuning and Reconfiguration of the I/O Forwarding Layer in HPC Platforms", PhD
thesis, UFRGS, Porto Alegre, 2020.
"""

from collections.abc import Mapping
from functools import partial

from penstock.campaign.cells import Cell, Results, every
from penstock.campaign.journal import Value
from penstock.campaign.sizes import Size
from penstock.report.findings import Basis, Findings
from penstock.studies.forwarding_policies import (
    applications,
    arbitration,
    decisions,
    medians,
    patterns,
    queues,
    sets,
)
from penstock.studies.forwarding_policies.figures import figures
from penstock.studies.study import Study
from penstock.studies.table import Table

VERSION = 1
DRAWS: Mapping[Size, int] = {"quick": 1, "fast": 4, "full": 40}
"""How often 10,000 sets are drawn; the thesis did it once."""
QUEUES: Mapping[Size, int] = {"quick": 6, "fast": 60, "full": 2000}
"""Random orders, and random queues."""


def run_cell(cell: Cell, *, seed: int) -> list[dict[str, Value]]:
    """Run one cell of the study."""
    match cell.scenario:
        case patterns.SCENARIO:
            return patterns.run_cell(cell)
        case sets.SCENARIO:
            return sets.run_cell(cell, seed=seed)
        case applications.SCENARIO:
            return applications.run_cell(cell)
    return queues.run_cell(cell, seed=seed)


def cells_of(size: Size) -> list[Cell]:
    """Return the cells; the thesis' 10,000 sets are in every size."""
    cells = [
        *every(patterns.SCENARIO, (0,), 1),
        *every(sets.SCENARIO, (0,), DRAWS[size]),
        *every(applications.SCENARIO, (0,), 1),
    ]
    for queue in queues.QUEUES:
        cells += every(queue, queues.DELAYS, 1)
        cells += every(queue + queues.LIVE, (queues.GEKKOFWD,), 1)
    for other in (queues.ORDERS, queues.RANDOM):
        cells += every(other, (queues.GEKKOFWD,), QUEUES[size])
    return cells


def findings(results: Results) -> Findings:
    """Return the claims and figures."""
    table = Table(results.rows)
    return Findings(
        title="Arbitration of I/O nodes, re-run",
        summary="Bez, Dynamic Tuning and Reconfiguration of the I/O Forwarding Layer in HPC "
        "Platforms (PhD thesis, UFRGS, 2020), Chapter 5, evaluated again from its published "
        "measurements: 189 access patterns on MareNostrum 4 and nine applications on "
        "Grid'5000. What a policy gives on a set of applications is computed from measured "
        "curves; queues of jobs are simulated. Figures in brackets are the least and the most "
        "over independent draws of 10,000 sets.",
        claims=[
            *patterns.claims(table),
            *medians.claims(table),
            *decisions.claims(table),
            *arbitration.claims(table),
        ],
        figures=figures(table),
        basis=Basis(
            simulated="queues of jobs",
            measured="189 access patterns on MareNostrum 4 and nine applications on "
            "Grid'5000, published with the thesis; what policies give is computed from them",
        ),
        provenance=(
            ("sets", f"{DRAWS[results.campaign.size]} draws of {sets.SETS} sets"),
            ("queues", f"{QUEUES[results.campaign.size]} random orders and random queues"),
        ),
    )


STUDY = Study(
    name="forwarding-policies",
    title="Arbitration of I/O nodes (Bez, thesis 2020): Figures 5.2-5.13, Table 5.3, and beyond",
    version=VERSION,
    cells=cells_of,
    run_cell=lambda _, seed: partial(run_cell, seed=seed),
    findings=findings,
)
