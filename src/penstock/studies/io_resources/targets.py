"""Claims of Section VI-C and Figure 13: storage targets.

The curves are synthetic, so these claims are shown and not counted, and judged for several ways to
draw them. Where measured curves are at hand, they are judged on these too, and counted.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from penstock.report.findings import Claim
from penstock.sim.generators.io_resources import ost_curves
from penstock.studies.io_resources.comparisons import (
    BEST,
    BY_COUNT,
    HIGH,
    IDLE,
    N_SYS,
    NODES,
    SLOWDOWN,
    STATIC,
    T_CPU,
    Sweep,
    at,
    claim,
)
from penstock.studies.io_resources.scenarios import (
    ALLOCATORS,
    GENERATORS,
    OST,
    OST_MEASURED,
    pair,
    targets,
)
from penstock.studies.table import Table, below
from penstock.studies.verdicts import at_limits

EXCELLENT = 0.2
MINDS = 0.3
"""From which load on t-cpu must be ahead of best-bandwidth."""
Judge = Callable[[Sweep, Sweep], tuple[bool, str]]


def claims(table: Table, nodes: Sweep) -> Iterator[Claim]:
    """Return the claims on synthetic targets, on measured ones, and on static allocation."""
    synthetic = {name: Sweep(table, targets(name)) for name in GENERATORS}
    yield from _judged(synthetic, nodes, generated=_generated(table, synthetic, nodes))
    if table.points(OST_MEASURED):
        yield from _judged({"measured": Sweep(table, OST_MEASURED)}, nodes)
    behind = _behind(nodes, SLOWDOWN)
    yield claim.over(
        "fig-13-io-nodes-static",
        f"with I/O nodes {min(behind.values()):.0%} to {max(behind.values()):.0%} behind the best "
        "allocator in Mean-I/O-SlowDown",
        at_limits(lambda limit: max(behind.values()) > limit),
    )


def _judged(
    by_curves: Mapping[str, Sweep], nodes: Sweep, *, generated: str = ""
) -> Iterator[Claim]:
    """Judge the claims for each set of curves, the first of which decides."""
    judges: Mapping[str, Judge] = {
        "fig-13-little-io-stress": _little_stress,
        "fig-13-cut-off-between": _cut_off,
        "fig-13-t-cpu-matches": _t_cpu,
        "fig-13-static-performance-excellent": _static,
    }
    for key, judge in judges.items():
        verdicts = {name: judge(sweep, nodes) for name, sweep in by_curves.items()}
        readings = {name: holds for name, (holds, _) in verdicts.items()}
        yield claim(
            key,
            "; ".join(f"{name}: {ours}" for name, (_, ours) in verdicts.items()),
            next(iter(readings.values())),
            readings=readings if generated else None,
            curves=", synthetic" if generated else "",
            apart="synthetic curves" if generated else "",
            generated=generated,
            excellent=100 * EXCELLENT,
            minds=MINDS,
        )


def _little_stress(sweep: Sweep, _: Sweep) -> tuple[bool, str]:
    first = sweep.all_loads[0]
    gained = sweep.change(SLOWDOWN, BEST, N_SYS, [first])
    lost = sweep.change(SLOWDOWN, BEST, N_SYS, HIGH)
    return gained.high < 0 < lost.low, f"{gained:+.1%} at load {first:g}, then {lost:+.0%}"


def _cut_off(sweep: Sweep, nodes: Sweep) -> tuple[bool, str]:
    cutoff, later = sweep.cutoff(), nodes.cutoff()
    earlier = cutoff is not None and (later is None or cutoff < later / 2)
    return earlier, f"{at(cutoff)} ({at(later)} with I/O nodes)"


def _t_cpu(sweep: Sweep, _: Sweep) -> tuple[bool, str]:
    first = sweep.all_loads[0]
    same = sweep.change(SLOWDOWN, T_CPU, BEST, [first])
    loads = [x for x in sweep.all_loads if x >= MINDS]
    slowdown, idle = (sweep.changes(metric, T_CPU, BEST, loads) for metric in (SLOWDOWN, IDLE))
    ends = [f(e.value for e in slowdown.values()) for f in (min, max)]
    return (
        abs(same.value) < 0.02 and below(slowdown) and below(idle),
        f"{same:+.1%} at load {first:g}, then {ends[0]:+.0%} to {ends[1]:+.0%}",
    )


def _behind(sweep: Sweep, metric: str) -> dict[float, float]:
    """Return how far static is behind the best allocator at each load."""
    return {
        x: sweep.mean(x, STATIC, metric) / min(sweep.mean(x, name, metric) for name in ALLOCATORS)
        - 1
        for x in sweep.loads
    }


def _static(sweep: Sweep, _: Sweep) -> tuple[bool, str]:
    slowdown, idle = (_behind(sweep, metric) for metric in (SLOWDOWN, IDLE))
    shown = ", ".join(f"{slowdown[x]:.0%} at {x:g}" for x in (0.1, 0.2, 0.5, 1.0))
    return (
        max(*slowdown.values(), *idle.values()) < EXCELLENT,
        f"{shown}; idle time at most {max(idle.values()):.0%}",
    )


def _generated(table: Table, synthetic: Mapping[str, Sweep], nodes: Sweep) -> str:
    """Say how much of the cut-off follows from how the curves are drawn."""
    steep = sum(any(c.bandwidth(n) > n * c.bandwidth(1) for n in c.counts) for c in ost_curves())
    load, cost = {}, {}
    own = next(iter(synthetic.values()))
    for scenario, sweep in ((OST, own), (NODES, nodes)):
        ends = sweep.loads[0], sweep.loads[-1]
        loads = table.grid(scenario, pair(BEST), "load", sweep.loads)
        load[scenario] = np.mean(loads / sweep.loads)
        cost[scenario] = [sweep.mean(x, N_SYS, BY_COUNT) for x in ends]
    return (
        " Much of it follows from the generator of curves, which we chose. All saturate, so that "
        f"b(n) / n falls ({steep} of {len(ost_curves())} have an n with b(n) > n b(1)) and n_sys "
        "is 1; most still rise, so that best-bandwidth takes many targets, and those that "
        "are flat but for noise give it any number. Its load is then "
        f"{load[OST]:.1f} times that of n-sys ({load[NODES]:.1f} times with I/O nodes) before any "
        "simulation, while what n-sys loses by its counts, rho_io, stays at "
        f"{cost[OST][0]:.1f} to {cost[OST][1]:.1f} from the lowest load to 1 (with I/O nodes it "
        f"grows from {cost[NODES][0]:.1f} to {cost[NODES][1]:.1f})."
    )
