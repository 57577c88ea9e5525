"""The ways to read paper packs' protocol (Section 6.2.2), and verdicts over all of them.

What the paper leaves open decides some of its figures. The first reading is the study's own; the
second takes from the same workloads those of the twelve loads; the others draw their own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.sim.generators.packs import ALPHAS, TWELVE
from penstock.studies.packs.scenarios import (
    CHOICES,
    FIRST_FIT,
    IO_NODES_PREFIX,
    VARIANTS,
    column,
    geometric,
)
from penstock.studies.table import Estimate, Floats, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The workloads that one way to read the paper gives."""

    scenario: str
    points: Sequence[float]
    printed: bool = True
    """Whether the printed text allows it."""

    def column(self, table: Table, policy: str, metric: str, io_nodes: int = 1) -> Floats:
        """Return a metric of all its workloads."""
        return column(table, f"{self.scenario}-{io_nodes}", policy, metric, self.points)

    def ratios(
        self, table: Table, metric: str, over: str, io_nodes: int = 1, under: str = FIRST_FIT
    ) -> Floats:
        """Return a metric of one contender over another's, workload by workload."""
        one, other = (self.column(table, p, metric, io_nodes) for p in (over, under))
        return one / other

    def relative(self, table: Table, metric: str, over: str, io_nodes: int = 1) -> Estimate:
        """Return the geometric mean of a ratio to first-fit's."""
        return geometric(self.ratios(table, metric, over, io_nodes))


FIRST = "39 loads"
READINGS: Mapping[str, Reading] = {
    FIRST: Reading(scenario=IO_NODES_PREFIX, points=ALPHAS),
    "12 loads": Reading(scenario=IO_NODES_PREFIX, points=TWELVE),
    **{
        name: Reading(scenario=CHOICES, points=(k,), printed=variant.choices.size_factor == 1)
        for k, (name, variant) in enumerate(VARIANTS.items())
    },
}
OWN = READINGS[FIRST]


ROUNDING = 0.005
"""The paper prints two digits."""


def contains(estimate: Estimate, *figures: float) -> bool:
    """Say whether the interval contains a figure of the paper, as rounded, or one between two."""
    low, high = min(figures) - ROUNDING, max(figures) + ROUNDING
    return estimate.low <= high and low <= estimate.high


def over_readings(judge: Callable[[Reading], bool]) -> dict[str, bool]:
    """Judge a claim for each reading; the study's own is first."""
    return {name: judge(reading) for name, reading in READINGS.items()}


def by_reading(value: Callable[[Reading], str]) -> str:
    """Return a figure for each reading, as text."""
    return "; ".join(f"{name} {value(reading)}" for name, reading in READINGS.items())
