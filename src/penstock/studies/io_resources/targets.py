"""Claims of Section VI-C, Figure 13: storage targets, with synthetic curves."""

import numpy as np

from penstock.report.findings import Claim
from penstock.sim.generators.io_resources import ost_curves
from penstock.studies.claims import load as claims_of
from penstock.studies.io_resources.scenarios import ALLOCATORS, pair
from penstock.studies.io_resources.terms import (
    BEST,
    BY_COUNT,
    HIGH,
    IDLE,
    N_SYS,
    NODES,
    OST,
    SLOWDOWN,
    STATIC,
    T_CPU,
    at,
    change,
    changes,
    cutoff,
    extent,
    mean,
    percent,
    unsaturated,
)
from penstock.studies.table import Table

claim = claims_of("io-resources")

SYNTHETIC = "The paper's 301 curves are not public; ours are synthetic, so only the pattern counts."


def claims(table: Table) -> list[Claim]:
    """Return the claims on storage targets."""
    return [_little_stress(table), _cutoff(table), _t_cpu(table), *_static(table)]


def _little_stress(table: Table) -> Claim:
    first = table.points(OST)[0]
    gained = change(table, OST, SLOWDOWN, pair(BEST), pair(N_SYS), loads=[first])
    lost = change(table, OST, SLOWDOWN, pair(BEST), pair(N_SYS), loads=HIGH)
    return claim(
        "fig-13-synthetic-little-io-stress",
        f"{percent(gained)} at load {first:g}, {percent(lost, 0)} at {HIGH[0]:g} to {HIGH[-1]:g}",
        gained.high < 0 < lost.low,
    )


def _cutoff(table: Table) -> Claim:
    targets, nodes = cutoff(table, OST), cutoff(table, NODES)
    return claim(
        "fig-13-synthetic-cut-off-between",
        f"{at(targets)} with targets, {at(nodes)} with I/O nodes",
        targets is not None and (nodes is None or targets < nodes / 2),
        generated=_generated(table),
    )


def _generated(table: Table) -> str:
    """Say how much of the cut-off follows from how the curves are drawn."""
    steep = sum(
        any(curve.bandwidth(n) > n * curve.bandwidth(1) for n in curve.counts)
        for curve in ost_curves()
    )
    load, cost = {}, {}
    for scenario in (OST, NODES):
        loads = unsaturated(table, scenario)
        load[scenario] = np.mean([table.grid(scenario, pair(BEST), "load", loads) / loads])
        cost[scenario] = [
            mean(table, scenario, x, pair(N_SYS), BY_COUNT) for x in (loads[0], loads[-1])
        ]
    return (
        "Much of it follows from the generator of curves, which we chose. All saturate, so that "
        f"b(n) / n falls ({steep} of {len(ost_curves())} have an n with b(n) > n b(1)) and n_sys "
        "is 1; most still rise, so that best-bandwidth takes many targets, and those that "
        "are flat but for noise give it any number. Its load is then "
        f"{load[OST]:.1f} times that of n-sys ({load[NODES]:.1f} times with I/O nodes) before any "
        "simulation, while what n-sys loses by its counts, rho_io, stays at "
        f"{cost[OST][0]:.1f} to {cost[OST][1]:.1f} from the lowest load to 1 (with I/O nodes it "
        f"grows from {cost[NODES][0]:.1f} to {cost[NODES][1]:.1f}). That real targets have such "
        "curves is not shown here."
    )


def _t_cpu(table: Table) -> Claim:
    first = table.points(OST)[0]
    same = change(table, OST, SLOWDOWN, pair(T_CPU), pair(BEST), loads=[first])
    later = [x for x in table.points(OST) if x >= 0.3]
    gained = changes(table, OST, SLOWDOWN, pair(T_CPU), pair(BEST), loads=later)
    idle = changes(table, OST, IDLE, pair(T_CPU), pair(BEST), loads=later)
    return claim(
        "fig-13-synthetic-t-cpu-matches",
        f"{percent(same)} at load {first:g}; then {extent(gained, 0)}, Machine-IdleTime "
        f"{extent(idle, 0)}",
        abs(same.value) < 0.02
        and all(e.high < 0 for by_load in (gained, idle) for e in by_load.values()),
    )


def _behind(table: Table, scenario: str, metric: str) -> dict[float, float]:
    """Return how far static is behind the best allocator at each load from 0.2 on."""
    return {
        x: mean(table, scenario, x, pair(STATIC), metric)
        / min(mean(table, scenario, x, pair(name), metric) for name in ALLOCATORS)
        - 1
        for x in table.points(scenario)
        if 0.2 <= x <= 1
    }


def _static(table: Table) -> list[Claim]:
    behind = {m: _behind(table, OST, m) for m in (SLOWDOWN, IDLE)}
    nodes = _behind(table, NODES, SLOWDOWN)
    worst = {m: max(values.values()) for m, values in behind.items()}
    return [
        claim(
            "fig-13-synthetic-static-performance-excellent",
            f"behind the best allocator by at most {worst[SLOWDOWN]:.0%} in "
            f"Mean-I/O-SlowDown and {worst[IDLE]:.0%} in Machine-IdleTime, at loads from 0.2 on",
            max(worst.values()) < 0.2,
        ),
        claim(
            "fig-13-io-nodes-static",
            f"with I/O nodes {min(nodes.values()):.0%} to {max(nodes.values()):.0%} behind "
            "the best allocator in Mean-I/O-SlowDown",
            max(nodes.values()) > 0.2 and max(nodes.values()) > 2 * worst[SLOWDOWN],
        ),
    ]
