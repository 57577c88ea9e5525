"""Claims of Section VI-A1: Figures 5, 8 and 9, what users see."""

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.report.findings import Claim
from penstock.studies.claims import load as claims_of
from penstock.studies.io_resources.scenarios import (
    ALLOCATORS,
    CLAIRVOYANT,
    MCKP,
    NON_CLAIRVOYANT,
    PLACERS,
    RANDOM,
    pair,
)
from penstock.studies.io_resources.terms import (
    BANDWIDTH,
    BEST,
    BY_COUNT,
    BY_OTHERS,
    HIGH,
    LOW,
    MAX,
    N_SYS,
    NAMES,
    NODES,
    SLOWDOWN,
    STATIC,
    T_CPU,
    TWENTY,
    at,
    change,
    changes,
    cutoff,
    extent,
    mean,
    over,
    percent,
    unsaturated,
)
from penstock.studies.table import Estimate, Table

claim = claims_of("io-resources")

SHARED_OUT = 19
"""I/O nodes that mckp gives exclusively: all but the one that is shared."""


TURNS = (
    "t-cpu gives the same counts until they would saturate the I/O nodes; past that it is ahead as "
    "long as it has room to choose, and falls back where n-sys alone nearly saturates them."
)


def claims(table: Table) -> list[Claim]:
    """Return the claims on slowdown."""
    return [
        _best_in_general(table),
        *_large_load(table),
        *_placement(table),
        *_decomposition(table),
        _mckp(table),
    ]


def _ahead(table: Table, placer: str) -> tuple[list[float], list[str]]:
    """Return the loads at which best-bandwidth has the lowest mean, and who has it elsewhere."""
    ahead, beaten = [], []
    for x in unsaturated(table, NODES):
        others = [name for name in ALLOCATORS if name not in (BEST, "t-cpu, strict")]
        first = min(others, key=lambda name: mean(table, NODES, x, pair(name, placer), SLOWDOWN))
        behind = change(table, NODES, SLOWDOWN, pair(BEST, placer), pair(first, placer), loads=[x])
        if behind.value > 0:
            beaten.append(f"{first} at {x:g} ({percent(behind)})")
        else:
            ahead.append(x)
    return ahead, beaten


def _best_in_general(table: Table) -> Claim:
    loads = unsaturated(table, NODES)
    by_placer = {placer: _ahead(table, placer) for placer in PLACERS}
    lost = by_placer[NON_CLAIRVOYANT][1]
    rest = [pair(name) for name in ALLOCATORS if name != BEST and not name.startswith(T_CPU)]
    first = [
        x
        for x in loads
        if all(
            mean(table, NODES, x, pair(BEST), SLOWDOWN) <= mean(table, NODES, x, name, SLOWDOWN)
            for name in rest
        )
    ]
    return claim(
        "fig-5-general-best-bandwidth",
        "lowest at "
        + ", ".join(
            f"{len(loads_ahead)} of {len(loads)} loads with {placer}"
            for placer, (loads_ahead, _) in by_placer.items()
        )
        + f"; leaving t-cpu out, at {len(first)} with {NON_CLAIRVOYANT}",
        all(len(loads_ahead) > len(loads) / 2 for loads_ahead, _ in by_placer.values()),
        lost=f" Above the lowest with {NON_CLAIRVOYANT}: {'; '.join(lost)}. {TURNS}"
        if lost
        else "",
    )


def _large_load(table: Table) -> list[Claim]:
    last, one = table.points(NODES)[-1], unsaturated(table, NODES)[-1]
    saturated = change(table, NODES, SLOWDOWN, pair(N_SYS), pair(BEST), loads=[last])
    limit = change(table, NODES, SLOWDOWN, pair(N_SYS), pair(BEST), loads=[one])
    twenty = table.points(TWENTY)[-1]
    few = change(table, TWENTY, SLOWDOWN, pair(N_SYS), pair(BEST), loads=[twenty])
    parts = {
        name: [over(table, NODES, [one], pair(name), part) for part in (BY_COUNT, BY_OTHERS)]
        for name in (BEST, N_SYS)
    }
    return [
        claim(
            "fig-5-when-io-load",
            f"{percent(saturated)} at load {last:g}; the two cross {at(cutoff(table, NODES))}",
            saturated.high < 0,
            last=last,
        ),
        claim(
            "fig-5-so-before-io",
            f"{percent(limit)} at load {one:g} with 40 jobs; {percent(few)} at {twenty:g} with 20",
            limit.high < 0,
            nodes=at(cutoff(table, NODES)),
            twenty=at(cutoff(table, TWENTY)),
            parts=" and ".join((f"{a:.1f} + {b:.1f} for {name}" for name, (a, b) in parts.items())),
        ),
    ]


def _placement(table: Table) -> list[Claim]:
    loads = unsaturated(table, NODES)
    gap = {
        name: change(
            table,
            NODES,
            SLOWDOWN,
            pair(name, CLAIRVOYANT),
            pair(name, NON_CLAIRVOYANT),
            loads=loads,
        )
        for name in ALLOCATORS
    }
    by_load = {
        name: changes(table, NODES, SLOWDOWN, pair(name, CLAIRVOYANT), pair(name, NON_CLAIRVOYANT))
        for name in ALLOCATORS
    }
    worse = {
        (name, placer): changes(table, NODES, SLOWDOWN, pair(name, RANDOM), pair(name, placer))
        for name in ALLOCATORS
        for placer in (CLAIRVOYANT, NON_CLAIRVOYANT)
    }
    points = [
        (name, placer, x, estimate)
        for (name, placer), at_loads in worse.items()
        for x, estimate in at_loads.items()
    ]
    unsure = [
        f"{name} with {placer} at {x:g} ({percent(estimate)})"
        for name, placer, x, estimate in points
        if estimate.low <= 0
    ]
    total = {
        placer: change(table, NODES, SLOWDOWN, pair(BEST, RANDOM), pair(BEST, placer), loads=loads)
        for placer in (CLAIRVOYANT, NON_CLAIRVOYANT)
    }
    return [
        claim(
            "fig-5-greedy-clairvoyant-gains",
            "greedy-clairvoyant against greedy-non-clairvoyant: "
            + ", ".join(f"{name} {percent(estimate)}" for name, estimate in gap.items())
            + f". Over all loads {_significant(gap, 'with')}",
            all(abs(estimate.value) < 0.05 for estimate in gap.values()),
            by_load="; ".join(
                (f"{name}: {_significant(estimates, 'at')}" for name, estimates in by_load.items())
            ),
        ),
        claim(
            "fig-5-both-have-impact",
            ", ".join(
                f"random placement {percent(estimate)} above {placer} (best-bandwidth)"
                for placer, estimate in total.items()
            ),
            not unsure,
            points=len(points),
            unsure=f" Not significant: {'; '.join(unsure)}." if unsure else "",
        ),
    ]


def _significant(gap: Mapping[str, Estimate] | Mapping[float, Estimate], where: str) -> str:
    """Say where a change is significantly above zero, worse, and where below."""
    worse = [f"{key}" for key, estimate in gap.items() if estimate.low > 0]
    better = [f"{key}" for key, estimate in gap.items() if estimate.high < 0]
    return ", ".join(
        f"significantly {word} {where} {' / '.join(keys)}"
        if keys
        else f"never significantly {word}"
        for word, keys in (("worse", worse), ("better", better))
    )


def _line(loads: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Return the slope of a line through values, and R^2."""
    slope, start = np.polyfit(loads, values, 1)
    off = np.array(values) - (slope * np.array(loads) + start)
    return float(slope), float(1 - off.var() / np.var(values))


def _decomposition(table: Table) -> list[Claim]:
    loads = unsaturated(table, NODES)
    own = max(float(np.abs(table.values(NODES, x, pair(BEST), BY_COUNT) - 1).max()) for x in loads)
    others = {
        (name, part): change(table, NODES, BY_OTHERS, pair(BEST), pair(name), loads=where)
        for name in (N_SYS, STATIC)
        for part, where in (("low", LOW), ("high", HIGH))
    }
    lines = {
        name: _line(loads, [mean(table, NODES, x, pair(name), BY_OTHERS) for x in loads])
        for name in (BEST, N_SYS, T_CPU)
    }
    rises = {
        name: [mean(table, NODES, x, pair(name), BY_COUNT) for x in (loads[0], loads[-1])]
        for name in (N_SYS, T_CPU)
    }
    steep, straight = lines[BEST]
    own_time = {
        name: over(table, NODES, LOW, pair(name), BY_OTHERS)
        / over(table, NODES, LOW, pair(name), BY_COUNT)
        for name in (BEST, STATIC)
    }
    return [
        claim("fig-8-best-bandwidth-rho-io", f"largest distance from 1: {own:.1e}", own < 1e-12),
        claim(
            "fig-8-best-bandwidth-pays",
            ", ".join(
                f"{percent(estimate, 0)} above {name} at {part} load"
                for (name, part), estimate in others.items()
            ),
            all(estimate.low > 0 for estimate in others.values()),
            low=LOW[0],
            low_2=LOW[-1],
            high=HIGH[0],
            high_2=HIGH[-1],
            own_time=own_time[BEST],
            own_time_2=own_time[STATIC],
        ),
        claim(
            "fig-9-best-bandwidth-rho-con",
            f"slope {steep:.2f}, R^2 = {straight:.3f}",
            steep > 0 and straight > 0.95,
        ),
        claim(
            "fig-9-rho-con-n-sys",
            ", ".join(f"{name} slope {slope:.2f}" for name, (slope, _) in lines.items()),
            all(lines[name][0] < steep / 2 for name in (N_SYS, T_CPU)),
        ),
        claim(
            "fig-9-comes-cost-larger",
            ", ".join(
                f"{name} {first:.2f} at load {loads[0]:g}, {last:.2f} at {loads[-1]:g}"
                for name, (first, last) in rises.items()
            ),
            all(last > first and last > 1 for first, last in rises.values()),
        ),
    ]


def _mckp(table: Table) -> Claim:
    loads = unsaturated(table, NODES)
    rivals = [pair(name) for name in ALLOCATORS]
    least = {
        metric: min(
            change(table, NODES, metric, MCKP, rival, loads=[x]).low
            for rival in rivals
            for x in loads
        )
        for metric in (SLOWDOWN, MAX)
    }
    shared = over(table, NODES, loads, MCKP, "resources") - SHARED_OUT
    moved = {x: change(table, NODES, BANDWIDTH, MCKP, pair(BEST), loads=[x]) for x in loads}
    return claim(
        "fig-8-mckp-worse-all",
        ", ".join(
            f"{NAMES[metric]} {over(table, NODES, loads, MCKP, metric):.0f} over all loads"
            for metric in (SLOWDOWN, MAX)
        )
        + f" (best-bandwidth {over(table, NODES, loads, pair(BEST), SLOWDOWN):.1f} and "
        f"{over(table, NODES, loads, pair(BEST), MAX):.1f})",
        min(least.values()) > 0,
        shared_out=SHARED_OUT,
        shared=shared,
        moved=extent(moved, 0),
    )
