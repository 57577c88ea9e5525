"""The ways to read paper packs' protocol (Section 6.2.2), and verdicts over all of them.

What the paper leaves open decides some of its figures. The first reading is the study's own; the
second takes from the same workloads those of the twelve loads, because the grid is printed as
{0.5, 0.75, 1...10}; the others draw their own. Sizes of another mean than the printed Q are no
readings: they show what larger jobs would do, and decide no verdict.
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
from penstock.studies.verdicts import LADDER, at_limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The workloads that one way to read the paper gives."""

    scenario: str
    points: Sequence[float]

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
        name: Reading(scenario=CHOICES, points=(k,))
        for k, (name, variant) in enumerate(VARIANTS.items())
        if variant.printed
    },
}
LARGER_JOBS: Mapping[str, Reading] = {
    name: Reading(scenario=CHOICES, points=(k,))
    for k, (name, variant) in enumerate(VARIANTS.items())
    if not variant.printed
}
"""Sizes that the text does not offer."""
OWN = READINGS[FIRST]
MIDDLE = LADDER[len(LADDER) // 2]
"""The limit at which all readings are judged; the first is judged at the others too."""


def over_readings(judge: Callable[[Reading], bool]) -> dict[str, bool]:
    """Judge a claim for each reading; the study's own is first."""
    return {name: judge(reading) for name, reading in READINGS.items()}


def over_limits(judge: Callable[[Reading, float], bool]) -> dict[str, bool]:
    """Judge a word without a figure: for each reading, and for the study's own at each limit."""
    others = [limit for limit in LADDER if limit != MIDDLE]
    by_limit = at_limits(lambda limit: judge(OWN, limit), others)
    return over_readings(lambda reading: judge(reading, MIDDLE)) | {
        f"{FIRST} at {limit}": verdict for limit, verdict in by_limit.items()
    }


def by_reading(value: Callable[[Reading], str], readings: Mapping[str, Reading] = READINGS) -> str:
    """Return a figure for each reading, as text."""
    return "; ".join(f"{name} {value(reading)}" for name, reading in readings.items())
