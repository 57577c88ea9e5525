"""Paper forwarding, Section 5.4: policies on 10,000 random sets of 16 measured access patterns.

Each set is met by every policy at every number F of I/O nodes from 0 to 128. Bandwidths are means
over repetitions (the published medians follow those), and Equation 5.2 sums them. The simple
policies are written here once more, for all sets at a time; a test holds them against the
registered ones. With no I/O node at all everybody goes direct.

What the thesis leaves open: sets are drawn evenly and without repetition (`REPEATED` has sets in
which a pattern may be twice); under one and static every application has at least one I/O node,
even where these are then more than F; one whose part rounds to zero under size and process goes
direct, without which the thesis' 4.1 for PROCESS (5.6.2) cannot be had; a count that was not
measured becomes the next smaller one; and STATIC's machine has 384 compute nodes, the smallest with
which the STATIC column of Table 5.3 is the printed one. `READINGS` has the other ways to read
STATIC.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from penstock.campaign.cells import Cell
from penstock.campaign.journal import Value
from penstock.data import COUNTS, mn4_patterns
from penstock.policies._support import knapsack
from penstock.studies.table import row

SCENARIO, REPEATED = "sets", "sets-repeated"
DRAWN = {"without repetition": "", "with repetition": f"{REPEATED} "}
"""How sets may be drawn, and what the scenarios of their rows begin with."""
BANDWIDTH, OVER, NEED, MACHINE, STATIC = "bandwidth", "over", "need", "machine", "static"
SIZE, MOST, OPTIMAL = 16, 128, 56
"""Applications a set, I/O nodes at most, and as many as the thesis calls optimal."""
SETS = 10_000
SITE_NODES = 384
POLICIES = ("zero", "one", "static", "size", "process", "mckp", "oracle")
RIVALS = ("static", "size", "process")
"""The policies that divide I/O nodes by the size of applications."""
Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """The patterns as arrays: bandwidth a pattern (row) and measured count (column)."""

    bandwidth: Floats
    nodes: Longs
    processes: Longs


@cache
def measured() -> Measured:
    """Return the 189 patterns, means over repetitions."""
    patterns = mn4_patterns()
    return Measured(
        bandwidth=np.array([pattern.curve("mean").at(COUNTS) for pattern in patterns]),
        nodes=np.array([pattern.nodes for pattern in patterns]),
        processes=np.array([pattern.processes for pattern in patterns]),
    )


def draw(sets: int, seed: tuple[int, ...], *, repeated: bool = False) -> Longs:
    """Return the patterns of each set, a row each; `repeated`: one may be in a set twice."""
    if repeated:
        return np.random.default_rng((*seed, 1)).integers(len(mn4_patterns()), size=(sets, SIZE))
    every = np.tile(np.arange(len(mn4_patterns())), (sets, 1))
    return np.random.default_rng(seed).permuted(every, axis=1)[:, :SIZE]


def down(count: Floats, most: int) -> Longs:
    """Return the largest measured count up to `count`, as an index; zero is direct access."""
    column: Longs = np.searchsorted(COUNTS, np.minimum(count, most), side="right") - 1
    return column


def up(count: Floats, most: int) -> Longs:
    """Return the smallest measured count from `count` on, as an index."""
    return np.minimum(np.searchsorted(COUNTS, count), down(np.array(float(most)), most))


def static_count(nodes: Longs, most: int, site: Longs | int) -> Floats:
    """Return ceil(C / R) with R = CN / F."""
    count: Floats = np.ceil(nodes * most / site)
    return count


def size_count(sizes: Longs, most: int) -> Floats:
    """Return round(F c / sum of c) for every application of a set."""
    count: Floats = np.rint(most * sizes / sizes.sum(axis=1, keepdims=True))
    return count


def columns(policy: str, sets: Longs, most: int) -> Longs:
    """Return what a simple policy gives each application, as an index into the counts."""
    data = measured()
    if policy == "zero" or (most == 0 and policy != "oracle"):
        return np.zeros(sets.shape, np.int64)
    match policy:
        case "one":
            return np.full(sets.shape, COUNTS.index(1))
        case "static":
            return down(static_count(data.nodes[sets], most, SITE_NODES), most)
        case "size":
            return down(size_count(data.nodes[sets], most), most)
        case "process":
            return down(size_count(data.processes[sets], most), most)
    best: Longs = data.bandwidth.argmax(axis=1)[sets]
    return best


def aggregate(sets: Longs, indices: Longs) -> Floats:
    """Return the sum of bandwidths of each set: Equation 5.2."""
    total: Floats = measured().bandwidth[sets, indices].sum(axis=1)
    return total


def mckp(sets: Longs) -> Floats:
    """Return the best sum of each set (row) at every number of I/O nodes (column)."""
    classes = [list(zip(COUNTS, curve, strict=True)) for curve in measured().bandwidth.tolist()]
    return knapsack.totals(classes, sets, MOST)


def aggregates(sets: Longs) -> dict[str, Floats]:
    """Return the bandwidth of every policy: one row per set, one column per number of I/O nodes."""
    bandwidths = {"mckp": mckp(sets)}
    for policy in POLICIES:
        if policy in ("zero", "oracle"):
            same = aggregate(sets, columns(policy, sets, MOST))
            bandwidths[policy] = np.broadcast_to(same[:, None], (len(sets), MOST + 1))
        elif policy != "mckp":
            by_pool = (columns(policy, sets, most) for most in range(MOST + 1))
            bandwidths[policy] = np.stack([aggregate(sets, indices) for indices in by_pool], axis=1)
    return bandwidths


MACHINES: Mapping[str, int | None] = {
    "256": 256,
    "384": 384,
    "512": 512,
    "3456": 3456,
    "the set's": None,
}
"""Compute nodes that STATIC may divide by: 3456 are MareNostrum's; or the set's own."""
ROUNDINGS: Mapping[str, tuple[Callable[[Floats], Floats], Callable[[Floats, int], Longs]]] = {
    "ceil, down": (np.ceil, down),
    "ceil, up": (np.ceil, up),
    "nearest, down": (lambda count: np.maximum(np.rint(count), 1), down),
}
"""How STATIC may round C F / CN, and that to a measured count."""
STATIC_READ, STATIC_BY_SET = "384, ceil, down", "the set's, nearest, down"
"""The reading with Table 5.3's column; and the one that has the figures of 5.4 if sets repeat."""
READINGS = {
    f"{machine}, {rounding}": (machine, rounding) for machine in MACHINES for rounding in ROUNDINGS
}


def static_by(machine: str, rounding: str, nodes: Longs) -> Longs:
    """Return what STATIC gives at 56 I/O nodes, as an index into the counts."""
    site = MACHINES[machine] or nodes.sum(axis=1, keepdims=True)
    rounded, fitted = ROUNDINGS[rounding]
    return fitted(rounded(nodes * OPTIMAL / site), OPTIMAL)


def run_cell(cell: Cell, *, seed: int, sets: int = SETS) -> list[dict[str, Value]]:
    """Draw the sets of one cell and return, as distributions over them, what the policies reach."""
    repeated = cell.scenario == REPEATED
    patterns = draw(sets, (seed, cell.workload), repeated=repeated)
    nodes = measured().nodes[patterns]
    bandwidths = aggregates(patterns)
    best, ours = bandwidths["oracle"][:, :1], bandwidths["mckp"]
    drawn = f"{REPEATED} " if repeated else ""
    rows = [_row(cell, f"{drawn}{MACHINE}", 0, "nodes", nodes.sum(axis=1))]
    for name in ("one", "oracle"):
        gain = bandwidths[name][:, OPTIMAL] / bandwidths["zero"][:, OPTIMAL] - 1
        rows.append(_row(cell, f"{drawn}{OVER}", OPTIMAL, f"{name} over zero", gain))
    for reading, (machine, rounding) in READINGS.items():
        counts = static_by(machine, rounding, nodes)
        gain = ours[:, OPTIMAL] / aggregate(patterns, counts) - 1
        rows.append(_row(cell, f"{drawn}{STATIC}", OPTIMAL, reading, gain))
    if repeated:
        gains = ours / bandwidths["static"] - 1
        over = f"{drawn}{OVER}"
        points = range(1, MOST + 1)
        return rows + [_row(cell, over, n, "mckp over static", gains[:, n]) for n in points]
    # Sums of the same terms in another order: equal up to rounding.
    need = (ours < best * (1 - 1e-12)).sum(axis=1)
    rows.append(_row(cell, NEED, 0, "mckp", need))
    for most in range(MOST + 1):
        for policy, totals in bandwidths.items():
            rows.append(_row(cell, BANDWIDTH, most, policy, totals[:, most]))
        for policy in (*RIVALS, "oracle"):
            gain = ours[:, most] / bandwidths[policy][:, most] - 1
            rows.append(_row(cell, OVER, most, f"mckp over {policy}", gain))
    return rows


QUANTILES = {"min": 0, "q05": 5, "q25": 25, "median": 50, "q75": 75, "q95": 95, "max": 100}


def spread(values: Floats | Longs) -> dict[str, float]:
    """Return the quantiles of a distribution over sets."""
    quantiles = np.percentile(values, list(QUANTILES.values()))
    return dict(zip(QUANTILES, quantiles.tolist(), strict=True))


def _row(
    cell: Cell, scenario: str, x: float, policy: str, values: Floats | Longs
) -> dict[str, Value]:
    return row(replace(cell, scenario=scenario, x=x), policy, **spread(values))
