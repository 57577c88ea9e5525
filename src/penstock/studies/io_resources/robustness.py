"""Claims of Sections VI-B and VI-C: jobs of which only the class is known, and storage targets."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from penstock.model import Curve
from penstock.report.findings import Claim
from penstock.sim.generators.io_resources import mn4_curves, ost_curves
from penstock.studies.io_resources.comparisons import (
    BEST,
    BY_COUNT,
    HIGH,
    IDLE,
    MEASURED,
    N_SYS,
    NODES,
    OST,
    SLOWDOWN,
    STATIC,
    T_CPU,
    Sweep,
    at,
    claim,
    extent,
)
from penstock.studies.io_resources.scenarios import (
    ALLOCATORS,
    CLAIRVOYANT,
    NON_CLAIRVOYANT,
    learnt,
    pair,
)
from penstock.studies.table import Estimate, Table, below, bootstrap, each

FIGURE_12 = (
    pair(T_CPU, NON_CLAIRVOYANT),
    pair(BEST, NON_CLAIRVOYANT),
    pair(BEST, CLAIRVOYANT),
)
LIMIT = 0.04


def approximate(name: str) -> str:
    """Return what rows call a pair that knows classes only."""
    return f"{name}, approximate"


def claims(table: Table) -> list[Claim]:
    """Return the claims on classes of jobs, interpolated counts and storage targets."""
    nodes, targets = Sweep(table, NODES), Sweep(table, OST)
    return [
        _classes(),
        *_loss(nodes),
        _interpolation(table, nodes),
        *_best_bandwidth(table, targets, nodes),
        *_static(targets, nodes),
    ]


def _classes() -> Claim:
    def best(curve: Curve) -> int:
        return curve.bandwidths.index(max(curve.bandwidths))

    shapes = Counter(curve.shape() for curve in mn4_curves())
    wrong = Counter(
        curve.shape()
        for curve in mn4_curves()
        if best(learnt(mn4_curves).approximate(curve)) != best(curve)
    )
    return claim(
        "vi-b-approximated-best-bandwidth",
        "; ".join(f"{shape}: {wrong[shape]} of {n}" for shape, n in sorted(shapes.items())),
        wrong["ascent"] == wrong["descent"] == 0 and wrong["peak"] + wrong["neutral"] > 0,
    )


def _loss(nodes: Sweep) -> Iterator[Claim]:
    for name in FIGURE_12:
        lost = nodes.changes(SLOWDOWN, approximate(name), name)
        idle = nodes.change(IDLE, approximate(name), name)
        beyond = {x: e for x, e in lost.items() if e.value > LIMIT}
        yield claim(
            "fig-12a-classes-only-loses",
            f"{extent(lost)}; Machine-IdleTime {idle:+.1%} over all loads",
            not beyond,
            allocator=name,
            within=_reason(nodes, name, beyond) if beyond else "",
        )
    whole = {name: nodes.change(SLOWDOWN, approximate(name), name) for name in FIGURE_12}
    yield claim(
        "fig-12a-three-t-cpu",
        each(whole, "{} {:+.1%}"),
        max(whole, key=lambda name: abs(whole[name].value)) == FIGURE_12[0],
    )
    ours, *rivals = map(approximate, FIGURE_12)
    gained = {rival: nodes.change(IDLE, ours, rival, HIGH) for rival in rivals}
    yield claim(
        "fig-12b-inaccurate-information-too",
        each(gained, "Machine-IdleTime {1:+.1%} against {0}")
        + f", at loads {HIGH[0]:g} to {HIGH[-1]:g}",
        below(gained),
    )


def _reason(nodes: Sweep, name: str, beyond: Mapping[float, Estimate]) -> str:
    if not name.startswith(T_CPU):
        unsure = all(e.low <= LIMIT for e in beyond.values())
        return (
            f" Above it at {each(beyond, '{:g} ({:+.1%})')}"
            + (", within the interval." if unsure else ".")
            + " Jobs whose curve peaks get another count than their best."
        )
    exact, believed = (
        _steep(curves)
        for curves in (mn4_curves(), list(map(learnt(mn4_curves).approximate, mn4_curves())))
    )
    less = nodes.change(SLOWDOWN, approximate(pair(N_SYS)), N_SYS, [0.3])
    return (
        f" {exact} of the 189 curves have more bandwidth a resource with several than with one, so "
        f"that n_sys > 1; approximated by their class, {believed} have. t-cpu begins with n-sys: "
        "such jobs begin, and where the I/O nodes are nearly saturated stay, at one resource. "
        "Machine-IdleTime, which t-cpu optimises and large jobs decide, hardly changes. n-sys "
        f"itself loses {less:+.0%} at load 0.3."
    )


def _steep(curves: Sequence[Curve]) -> int:
    """Count the curves with more bandwidth a resource with several than with the fewest."""
    return sum(
        any(parts > parts[0]) for parts in (np.array(c.bandwidths) / c.counts for c in curves)
    )


def _interpolation(table: Table, nodes: Sweep) -> Claim:
    """Hold the sets with measured counts only against the same sets with interpolated ones."""
    measured, names = Sweep(table, MEASURED), (BEST, N_SYS, T_CPU)
    loads = measured.all_loads
    estimates: dict[str, Estimate] = {}
    for name in names:
        exact = table.grid(MEASURED, pair(name), SLOWDOWN)
        between = table.grid(NODES, pair(name), SLOWDOWN, loads)[: len(exact)]
        estimates[name] = bootstrap(lambda a, b: (a / b).mean(axis=1), exact, between) - 1
    same_order = [
        sorted(names, key=lambda name: measured.mean(x, name, SLOWDOWN))
        == sorted(names, key=lambda name: nodes.mean(x, name, SLOWDOWN))
        for x in loads
    ]
    moved = [name for name, e in estimates.items() if not e.low <= 0 <= e.high]
    unmoved = [name for name, e in estimates.items() if e.low == e.high == 0]
    parts = [
        f"Not nothing: {', '.join(moved)} changes significantly." if moved else "",
        f"For {' and '.join(unmoved)} nothing changes: with straight lines between measured counts "
        "their best is always a measured one."
        if unmoved
        else "",
    ]
    return claim(
        "counts-between-the-measured-ones-giving-them-decides",
        f"with measured counts only: {each(estimates, '{} {:+.1%}')}",
        all(abs(e.value) < 0.05 for e in estimates.values()) and all(same_order),
        order=sum(same_order),
        loads=len(loads),
        moved=" ".join(filter(None, parts)),
    )


def _best_bandwidth(table: Table, targets: Sweep, nodes: Sweep) -> Iterator[Claim]:
    first = targets.all_loads[0]
    gained = targets.change(SLOWDOWN, BEST, N_SYS, [first])
    lost = targets.change(SLOWDOWN, BEST, N_SYS, HIGH)
    yield claim(
        "fig-13-synthetic-little-io-stress",
        f"{gained:+.1%} at load {first:g}, {lost:+.0%} at {HIGH[0]:g} to {HIGH[-1]:g}",
        gained.high < 0 < lost.low,
    )
    cutoff, later = targets.cutoff(), nodes.cutoff()
    yield claim(
        "fig-13-synthetic-cut-off-between",
        f"{at(cutoff)} with targets, {at(later)} with I/O nodes",
        cutoff is not None and (later is None or cutoff < later / 2),
        generated=_generated(table, targets, nodes),
    )
    same = targets.change(SLOWDOWN, T_CPU, BEST, [first])
    loads = [x for x in targets.all_loads if x >= 0.3]
    slowdown, idle = (targets.changes(metric, T_CPU, BEST, loads) for metric in (SLOWDOWN, IDLE))
    yield claim(
        "fig-13-synthetic-t-cpu-matches",
        f"{same:+.1%} at load {first:g}; then {extent(slowdown, '+.0%')}, Machine-IdleTime "
        f"{extent(idle, '+.0%')}",
        abs(same.value) < 0.02 and below(slowdown) and below(idle),
    )


def _generated(table: Table, targets: Sweep, nodes: Sweep) -> str:
    """Say how much of the cut-off follows from how the curves are drawn."""
    steep = sum(any(c.bandwidth(n) > n * c.bandwidth(1) for n in c.counts) for c in ost_curves())
    load, cost = {}, {}
    for scenario, sweep in ((OST, targets), (NODES, nodes)):
        ends = sweep.loads[0], sweep.loads[-1]
        loads = table.grid(scenario, pair(BEST), "load", sweep.loads)
        load[scenario] = np.mean(loads / sweep.loads)
        cost[scenario] = [sweep.mean(x, N_SYS, BY_COUNT) for x in ends]
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


def _static(targets: Sweep, nodes: Sweep) -> Iterator[Claim]:
    def behind(sweep: Sweep, metric: str) -> list[float]:
        """Return how far static is behind the best allocator at each load from 0.2 on."""
        return [
            sweep.mean(x, STATIC, metric) / min(sweep.mean(x, name, metric) for name in ALLOCATORS)
            - 1
            for x in sweep.loads
            if x >= 0.2
        ]

    slowdown, idle = (max(behind(targets, metric)) for metric in (SLOWDOWN, IDLE))
    with_nodes = behind(nodes, SLOWDOWN)
    yield claim(
        "fig-13-synthetic-static-performance-excellent",
        f"behind the best allocator by at most {slowdown:.0%} in Mean-I/O-SlowDown and {idle:.0%} "
        "in Machine-IdleTime, at loads from 0.2 on",
        max(slowdown, idle) < 0.2,
    )
    yield claim(
        "fig-13-io-nodes-static",
        f"with I/O nodes {min(with_nodes):.0%} to {max(with_nodes):.0%} behind the best allocator "
        "in Mean-I/O-SlowDown",
        max(with_nodes) > 0.2 and max(with_nodes) > 2 * slowdown,
    )
