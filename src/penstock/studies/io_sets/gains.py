"""How much one policy gains over another, in the paper's terms.

A gain in Utilization is ours / other - 1. Max Stretch and IO-slowdown are better when lower, so
the gain is other / ours - 1: "the relative loss of FAIR-SHARE to SET-10" (Figure 6). Figures are
ratios of means over workloads, averaged over points, with 95% bootstrap intervals.
"""

from collections.abc import Sequence

from penstock.studies.table import Estimate, Table
from penstock.studies.texts import claims_of

UTILIZATION, STRETCH, SLOWDOWN = "utilization", "max_stretch", "io_slowdown"
METRICS = (UTILIZATION, STRETCH, SLOWDOWN)
NAMES = {UTILIZATION: "Utilization", STRETCH: "Max Stretch", SLOWDOWN: "IO-slowdown"}
SET_10, FAIR_SHARE, EXCLUSIVE = "set-10", "fair-share", "exclusive-fcfs"
PARTS = {"set-fair-share": "without weights", "share-priority": "without sets"}
"""The halves of set-10, by what each lacks."""
claim = claims_of("io-sets")


def gain(
    table: Table,
    scenario: str,
    metric: str,
    points: Sequence[float] | None = None,
    *,
    ours: str = SET_10,
    other: str = FAIR_SHARE,
) -> Estimate:
    """Return by how much `ours` is better than `other`, as a fraction."""
    over, under = (ours, other) if metric == UTILIZATION else (other, ours)
    return table.ratio(scenario, metric, over, under, points) - 1


def gains(
    table: Table, scenario: str, metric: str, *, ours: str = SET_10, other: str = FAIR_SHARE
) -> dict[float, Estimate]:
    """Return the gain at each point of a scenario."""
    return {
        x: gain(table, scenario, metric, [x], ours=ours, other=other)
        for x in table.points(scenario)
    }


def without_a_part(table: Table, scenario: str, metric: str, x: float) -> str:
    """Return what is gained at a point by set-10, and by it without its weights or its sets."""
    won = {p: gain(table, scenario, metric, [x], ours=p) for p in (SET_10, *PARTS)}
    return ", ".join(f"{PARTS.get(policy, policy)} {e:+.1%}" for policy, e in won.items())


def spread(by_point: dict[float, Estimate], name: str, form: str = "+.1%") -> str:
    """Return the smallest and the largest of several gains, and where they are."""
    ends = (f(by_point, key=lambda x: by_point[x].value) for f in (min, max))
    return " to ".join(f"{by_point[x].value:{form}} ({name} = {x:g})" for x in ends)


def near(value: float, paper: float) -> bool:
    """Say whether a figure is within a fifth of the paper's."""
    return abs(value - paper) <= abs(paper) / 5
