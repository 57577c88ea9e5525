"""What the study's figures have in common."""

import numpy as np

from penstock.report.findings import Series
from penstock.studies.io_resources.scenarios import ALLOCATORS, MCKP
from penstock.studies.table import Table, curve

LOAD = r"I/O-load($\pi_{sys}$)"
PAPER = tuple(name for name in ALLOCATORS if name != "t-cpu, strict")
SETS = "Simulated; {} synthetic sets of 40 jobs a load"
CURVES = "bandwidth curves measured on MareNostrum 4"


def sets(table: Table, scenario: str) -> str:
    """Say how many sets a point stands for."""
    x = table.points(scenario)[0]
    return SETS.format(len(table.rows(scenario, x, MCKP)))


def means(table: Table, scenario: str, policy: str, metric: str, label: str) -> Series:
    """Return the means of a policy over the load."""
    loads = table.points(scenario)
    return curve(label, {x: table.mean(scenario, x, policy, metric) for x in loads})


def percentiles(table: Table, scenario: str, policy: str, metric: str, label: str) -> Series:
    """Return means with the interval from the 10th to the 90th percentile, as the paper draws."""
    loads = table.points(scenario)
    values = [table.values(scenario, x, policy, metric) for x in loads]
    return Series(
        label=label,
        x=loads,
        y=[float(v.mean()) for v in values],
        low=[float(np.percentile(v, 10)) for v in values],
        high=[float(np.percentile(v, 90)) for v in values],
    )
