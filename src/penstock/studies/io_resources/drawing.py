"""What the study's figures have in common."""

import numpy as np

from penstock.report.findings import Series
from penstock.studies.captions import load as captions_of
from penstock.studies.io_resources.scenarios import ALLOCATORS, MCKP
from penstock.studies.table import Table

figure = captions_of("io-resources")

LOAD = r"I/O-load($\pi_{sys}$)"
PAPER = tuple(name for name in ALLOCATORS if name != "t-cpu, strict")
IDLE_PART = "part of node time in I/O"


def sets(table: Table, scenario: str, jobs: int = 40) -> str:
    """Return how many sets each point stands for."""
    count = len(table.rows(scenario, table.points(scenario)[0], MCKP))
    return f"Simulated; {count} synthetic sets of {jobs} jobs per load"


def percentiles(table: Table, scenario: str, policy: str, metric: str, label: str) -> Series:
    """Return means with the interval from the 10th to the 90th percentile, as the paper does."""
    loads = table.points(scenario)
    values = [table.values(scenario, x, policy, metric) for x in loads]
    low, high = ([float(np.percentile(v, part)) for v in values] for part in (10, 90))
    return Series(label=label, x=loads, y=[float(v.mean()) for v in values], low=low, high=high)
