"""Rows of a campaign as samples: means over workloads with bootstrap intervals."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from penstock.campaign.cells import Cell
from penstock.campaign.journal import Row, Value
from penstock.campaign.statistics import Estimate, Floats, bootstrap
from penstock.report.findings import Series

__all__ = [
    "Estimate",
    "Floats",
    "Table",
    "above",
    "below",
    "bootstrap",
    "curve",
    "each",
    "row",
]


def each(values: Mapping[Any, object], form: str = "{} {}", separator: str = ", ") -> str:
    """Return keys and values as text, each pair in the same form."""
    return separator.join(form.format(key, value) for key, value in values.items())


def below(estimates: Mapping[Any, Estimate], limit: float = 0.0) -> bool:
    """Say whether all intervals are below a limit."""
    return all(estimate.high < limit for estimate in estimates.values())


def above(estimates: Mapping[Any, Estimate], limit: float = 0.0) -> bool:
    """Say whether all intervals are above a limit."""
    return all(estimate.low > limit for estimate in estimates.values())


def row(cell: Cell, policy: str, **values: Value) -> dict[str, Value]:
    """Return the row of a policy that met the workload of a cell."""
    key: dict[str, Value] = {"scenario": cell.scenario, "x": cell.x, "workload": cell.workload}
    return key | {"policy": policy} | values


def curve(label: str, by_point: Mapping[float, Estimate], scale: float = 1.0) -> Series:
    """Return estimates over a parameter as a curve with its intervals."""
    estimates = by_point.values()
    return Series(
        label=label,
        x=list(by_point),
        y=[scale * e.value for e in estimates],
        low=[scale * e.low for e in estimates],
        high=[scale * e.high for e in estimates],
    )


class Table:
    """The rows of a campaign, looked up by scenario, point, policy and metric."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows: dict[tuple[str, float, str], list[Row]] = {}
        for row in rows:
            key = str(row["scenario"]), float(row["x"] or 0), str(row["policy"])
            self._rows.setdefault(key, []).append(row)

    def points(self, scenario: str) -> list[float]:
        """Return the points of a scenario, in order."""
        return sorted({x for name, x, _ in self._rows if name == scenario})

    def policies(self, scenario: str) -> list[str]:
        """Return the policies of a scenario, in the order of the rows."""
        return list(dict.fromkeys(policy for name, _, policy in self._rows if name == scenario))

    def rows(self, scenario: str, x: float, policy: str) -> list[Row]:
        """Return one row per workload."""
        return self._rows[scenario, x, policy]

    def values(self, scenario: str, x: float, policy: str, metric: str) -> Floats:
        """Return a metric, one entry per workload."""
        values = [row[metric] for row in self.rows(scenario, x, policy)]
        return np.array([np.nan if value is None else value for value in values], float)

    def grid(
        self, scenario: str, policy: str, metric: str, points: Sequence[float] | None = None
    ) -> Floats:
        """Return a metric with one row per workload and one column per point."""
        points = self.points(scenario) if points is None else points
        return np.stack([self.values(scenario, x, policy, metric) for x in points], axis=1)

    def mean(self, scenario: str, x: float, policy: str, metric: str) -> Estimate:
        """Return a metric's mean over workloads."""
        return bootstrap(lambda mean: mean, self.values(scenario, x, policy, metric))

    def ratio(
        self,
        scenario: str,
        metric: str,
        over: str,
        under: str,
        points: Sequence[float] | None = None,
    ) -> Estimate:
        """Return the mean of `over` divided by the mean of `under`, averaged over points."""
        return bootstrap(
            lambda a, b: (a / b).mean(axis=1),
            self.grid(scenario, over, metric, points),
            self.grid(scenario, under, metric, points),
        )
