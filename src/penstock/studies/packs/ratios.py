"""A campaign's rows as ratios: workload by workload, as geometric means, and over the I/O load.

The paper plots against alpha as drawn, not as asked for (Section 6.2.2), so points are gathered
into bins of alpha. Intervals are 95% bootstrap intervals over workloads.
"""

from collections.abc import Callable

import numpy as np

from penstock.studies.packs.scenarios import FIRST_FIT
from penstock.studies.table import Estimate, Floats, Table, bootstrap

MAKESPAN, STRETCH, PACK_STRETCH = "makespan", "max_stretch", "pack_stretch"
EDGES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, np.inf)
FEWEST = 3
"""Workloads that a bin needs to be shown."""


def column(table: Table, scenario: str, policy: str, metric: str) -> Floats:
    """Return a metric of all workloads of a scenario, over all points, in one order."""
    points = table.points(scenario)
    return np.concatenate([table.values(scenario, x, policy, metric) for x in points])


def ratios(table: Table, scenario: str, metric: str, over: str, under: str = FIRST_FIT) -> Floats:
    """Return a metric of one contender over another's, workload by workload."""
    quotient: Floats = column(table, scenario, over, metric) / column(
        table, scenario, under, metric
    )
    return quotient


def geometric(values: Floats) -> Estimate:
    """Return the geometric mean, the paper's for ratios (footnote 6)."""
    return bootstrap(np.exp, np.log(values))


def mean(values: Floats) -> Estimate:
    """Return the arithmetic mean."""
    return bootstrap(lambda value: value, values)


def relative(
    table: Table, scenario: str, metric: str, over: str, under: str = FIRST_FIT
) -> Estimate:
    """Return the geometric mean of a ratio over all workloads."""
    return geometric(ratios(table, scenario, metric, over, under))


def by_load(
    alpha: Floats, values: Floats, estimate: Callable[[Floats], Estimate] = geometric
) -> dict[float, Estimate]:
    """Return one estimate per bin of alpha, at the bin's mean alpha."""
    bins = np.digitize(alpha, EDGES)
    result = {}
    for number in np.unique(bins):
        inside = bins == number
        if inside.sum() >= FEWEST:
            result[float(alpha[inside].mean())] = estimate(values[inside])
    return result


def load_of(table: Table, scenario: str) -> Floats:
    """Return alpha of all workloads of a scenario."""
    return column(table, scenario, FIRST_FIT, "alpha")
