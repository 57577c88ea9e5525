"""The arbitration study of paper forwarding, Chapter 5, re-run from the measured curves.

J. L. Bez, "Dynamic Tuning and Reconfiguration of the I/O Forwarding Layer in HPC Platforms", PhD
thesis, UFRGS, Porto Alegre, 2020.
"""

from collections.abc import Mapping
from functools import partial

from penstock.campaign.cells import Cell, Results, every
from penstock.campaign.journal import Value
from penstock.campaign.sizes import Size
from penstock.report.findings import Findings
from penstock.studies.forwarding_policies import (
    applications,
    patterns,
    queue_claims,
    queues,
    set_claims,
    sets,
)
from penstock.studies.forwarding_policies.figures import figures
from penstock.studies.study import Study
from penstock.studies.table import Table
from penstock.studies.texts import findings_of

VERSION = 4
DRAWS: Mapping[Size, int] = {"quick": 1, "fast": 4, "full": 40}
"""How often 10,000 sets are drawn; the thesis did it once."""
QUEUES: Mapping[Size, int] = {"quick": 6, "fast": 60, "full": 2000}
"""Random orders, and random queues."""


def run_cell(cell: Cell, *, seed: int) -> list[dict[str, Value]]:
    """Run one cell of the study."""
    match cell.scenario:
        case patterns.SCENARIO:
            return patterns.run_cell(cell)
        case sets.SCENARIO | sets.REPEATED:
            return sets.run_cell(cell, seed=seed)
        case applications.SCENARIO:
            return applications.run_cell(cell)
    return queues.run_cell(cell, seed=seed)


def cells_of(size: Size) -> list[Cell]:
    """Return the cells; the thesis' 10,000 sets are in every size."""
    cells = [
        *every(patterns.SCENARIO, (0,), 1),
        *every(sets.SCENARIO, (0,), DRAWS[size]),
        *every(sets.REPEATED, (0,), DRAWS[size]),
        *every(applications.SCENARIO, (0,), 1),
    ]
    for queue in queues.QUEUES:
        cells += every(queue, (*queues.DELAYS, queues.LONGER_JOBS), 1)
        for variant in (queues.LIVE, queues.LARGE):
            cells += every(queue + variant, (queues.GEKKOFWD,), 1)
    for other in (queues.ORDERS, queues.RANDOM):
        cells += every(other, (queues.GEKKOFWD,), QUEUES[size])
    return cells


def findings(results: Results) -> Findings:
    """Return the claims and figures."""
    table, size = Table(results.rows), results.campaign.size
    parts = (patterns, set_claims, applications, queue_claims)
    return findings_of(
        "forwarding-policies",
        claims=[claim for part in parts for claim in part.claims(table)],
        figures=figures(table),
        provenance=(
            ("sets", f"{DRAWS[size]} draws of {sets.SETS} sets"),
            ("queues", f"{QUEUES[size]} random orders and random queues"),
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
