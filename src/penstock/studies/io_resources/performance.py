"""Claims of Section VI-A, Figures 5 to 10: what users see, and what the machine loses."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from penstock.report.findings import Claim
from penstock.studies.io_resources.comparisons import (
    BANDWIDTH,
    BEST,
    BY_COUNT,
    BY_OTHERS,
    HIGH,
    IDLE,
    LOW,
    MAX,
    N_SYS,
    NAMES,
    NODES,
    PAPER,
    SLOWDOWN,
    SPREAD,
    STATIC,
    STRICT,
    T_CPU,
    TWENTY,
    Sweep,
    at,
    claim,
    extent,
)
from penstock.studies.io_resources.scenarios import (
    ALLOCATORS,
    CLAIRVOYANT,
    MCKP,
    NON_CLAIRVOYANT,
    PLACERS,
    RANDOM,
    pair,
)
from penstock.studies.table import Estimate, Table, above, below, each

SHARED_OUT = 19
"""I/O nodes that mckp gives exclusively: all but the one that is shared."""
TURNS = (
    "t-cpu gives the same counts until they would saturate the I/O nodes; past that it is ahead as "
    "long as it has room to choose, and falls back where n-sys alone nearly saturates them."
)


def claims(table: Table) -> list[Claim]:
    """Return the claims on users' slowdown, I/O-spread and Machine-IdleTime."""
    nodes = Sweep(table, NODES)
    return [
        *_allocation(nodes, Sweep(table, TWENTY)),
        *_placement(nodes),
        *_decomposition(table, nodes),
        _mckp(nodes),
        *_spread(nodes),
        *_idle_time(nodes),
        _strict(table, nodes),
    ]


def _ahead(nodes: Sweep, placer: str) -> tuple[list[float], list[str]]:
    """Return the loads at which best-bandwidth has the lowest mean, and who has it elsewhere."""
    ahead, beaten = [], []
    others = [name for name in PAPER if name != BEST]
    for x in nodes.loads:
        first = min(others, key=lambda name: nodes.mean(x, pair(name, placer), SLOWDOWN))
        behind = nodes.change(SLOWDOWN, pair(BEST, placer), pair(first, placer), [x])
        if behind.value > 0:
            beaten.append(f"{first} at {x:g} ({behind:+.1%})")
        else:
            ahead.append(x)
    return ahead, beaten


def _allocation(nodes: Sweep, twenty: Sweep) -> Iterator[Claim]:
    loads = nodes.loads
    by_placer = {placer: _ahead(nodes, placer) for placer in PLACERS}
    lost = "; ".join(by_placer[NON_CLAIRVOYANT][1])
    rest = [name for name in ALLOCATORS if name != BEST and not name.startswith(T_CPU)]
    first = sum(
        all(nodes.mean(x, BEST, SLOWDOWN) <= nodes.mean(x, name, SLOWDOWN) for name in rest)
        for x in loads
    )
    ahead = {placer: len(where) for placer, (where, _) in by_placer.items()}
    yield claim(
        "fig-5-general-best-bandwidth",
        f"lowest at {each(ahead, f'{{1}} of {len(loads)} loads with {{0}}')}"
        f"; leaving t-cpu out, at {first} with {NON_CLAIRVOYANT}",
        all(count > len(loads) / 2 for count in ahead.values()),
        lost=f" Above the lowest with {NON_CLAIRVOYANT}: {lost}. {TURNS}" if lost else "",
    )

    last, one, few = nodes.all_loads[-1], loads[-1], twenty.all_loads[-1]
    saturated, limit = (nodes.change(SLOWDOWN, N_SYS, BEST, [x]) for x in (last, one))
    parts = {
        name: " + ".join(f"{nodes.mean(one, name, part):.1f}" for part in (BY_COUNT, BY_OTHERS))
        for name in (BEST, N_SYS)
    }
    yield claim(
        "fig-5-when-io-load",
        f"{saturated:+.1%} at load {last:g}; the two cross {at(nodes.cutoff())}",
        saturated.high < 0,
        last=last,
    )
    yield claim(
        "fig-5-so-before-io",
        f"{limit:+.1%} at load {one:g} with 40 jobs; "
        f"{twenty.change(SLOWDOWN, N_SYS, BEST, [few]):+.1%} at {few:g} with 20",
        limit.high < 0,
        nodes=at(nodes.cutoff()),
        twenty=at(twenty.cutoff()),
        parts=each(parts, "{1} for {0}", " and "),
    )


def _placement(nodes: Sweep) -> Iterator[Claim]:
    informed = {name: (pair(name, CLAIRVOYANT), pair(name, NON_CLAIRVOYANT)) for name in ALLOCATORS}
    gap = {name: nodes.change(SLOWDOWN, *pairs) for name, pairs in informed.items()}
    by_load = {name: nodes.changes(SLOWDOWN, *pairs) for name, pairs in informed.items()}
    yield claim(
        "fig-5-greedy-clairvoyant-gains",
        f"greedy-clairvoyant against greedy-non-clairvoyant: {each(gap, '{} {:+.1%}')}. "
        f"Over all loads {_significant(gap, 'with')}",
        all(abs(estimate.value) < 0.05 for estimate in gap.values()),
        by_load="; ".join(f"{name}: {_significant(e, 'at')}" for name, e in by_load.items()),
    )

    worse = {
        f"{name} with {placer} at {x:g}": estimate
        for name in ALLOCATORS
        for placer in (CLAIRVOYANT, NON_CLAIRVOYANT)
        for x, estimate in nodes.changes(SLOWDOWN, pair(name, RANDOM), pair(name, placer)).items()
    }
    unsure = each({k: e for k, e in worse.items() if e.low <= 0}, "{} ({:+.1%})", "; ")
    total = {
        placer: nodes.change(SLOWDOWN, pair(BEST, RANDOM), pair(BEST, placer))
        for placer in (CLAIRVOYANT, NON_CLAIRVOYANT)
    }
    yield claim(
        "fig-5-both-have-impact",
        each(total, "random placement {1:+.1%} above {0} (best-bandwidth)"),
        not unsure,
        points=len(worse),
        unsure=f" Not significant: {unsure}." if unsure else "",
    )


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


def _decomposition(table: Table, nodes: Sweep) -> Iterator[Claim]:
    loads = nodes.loads
    own = float(np.abs(table.grid(NODES, pair(BEST), BY_COUNT, loads) - 1).max())
    others = {
        f"{name} at {part}": nodes.change(BY_OTHERS, BEST, name, where)
        for name in (N_SYS, STATIC)
        for part, where in (("low", LOW), ("high", HIGH))
    }
    own_time = {
        name: nodes.over(LOW, name, BY_OTHERS) / nodes.over(LOW, name, BY_COUNT)
        for name in (BEST, STATIC)
    }
    yield claim("fig-8-best-bandwidth-rho-io", f"largest distance from 1: {own:.1e}", own < 1e-12)
    yield claim(
        "fig-8-best-bandwidth-pays",
        each(others, "{1:+.0%} above {0} load"),
        above(others),
        own_time=own_time[BEST],
        own_time_2=own_time[STATIC],
    )

    lines = {
        name: _line(loads, [nodes.mean(x, name, BY_OTHERS) for x in loads])
        for name in (BEST, N_SYS, T_CPU)
    }
    rises = {
        name: [nodes.mean(x, name, BY_COUNT) for x in (loads[0], loads[-1])]
        for name in (N_SYS, T_CPU)
    }
    steep, straight = lines[BEST]
    yield claim(
        "fig-9-best-bandwidth-rho-con",
        f"slope {steep:.2f}, R^2 = {straight:.3f}",
        steep > 0 and straight > 0.95,
    )
    yield claim(
        "fig-9-rho-con-n-sys",
        each(lines, "{} slope {[0]:.2f}"),
        all(lines[name][0] < steep / 2 for name in (N_SYS, T_CPU)),
    )
    yield claim(
        "fig-9-comes-cost-larger",
        each(rises, f"{{0}} {{1[0]:.2f}} at load {loads[0]:g}, {{1[1]:.2f}} at {loads[-1]:g}"),
        all(last > first and last > 1 for first, last in rises.values()),
    )


def _mckp(nodes: Sweep) -> Claim:
    mckp, best = (
        {metric: nodes.over(nodes.loads, name, metric) for metric in (SLOWDOWN, MAX)}
        for name in (MCKP, BEST)
    )
    return claim(
        "fig-8-mckp-worse-all",
        ", ".join(f"{NAMES[metric]} {value:.0f} over all loads" for metric, value in mckp.items())
        + f" (best-bandwidth {best[SLOWDOWN]:.1f} and {best[MAX]:.1f})",
        all(above(nodes.changes(metric, MCKP, name)) for metric in mckp for name in ALLOCATORS),
        shared_out=SHARED_OUT,
        shared=nodes.over(nodes.loads, MCKP, "resources") - SHARED_OUT,
        moved=extent(nodes.changes(BANDWIDTH, MCKP, BEST), "+.0%"),
    )


def _spread(nodes: Sweep) -> Iterator[Claim]:
    """Yield the claims on Figures 6 and 7: how evenly the I/O nodes are used."""
    allocators, loads = [(name, 0.5) for name in (BEST, N_SYS, "random")], (0.2, 0.5, 0.8)
    cases = {
        "fig-6-clairvoyant": (allocators, CLAIRVOYANT, NON_CLAIRVOYANT),
        "fig-6-non-clairvoyant": (allocators, NON_CLAIRVOYANT, RANDOM),
        "fig-7-clairvoyant": ([(BEST, x) for x in loads], CLAIRVOYANT, NON_CLAIRVOYANT),
        "fig-7-non-clairvoyant": ([(BEST, x) for x in loads], NON_CLAIRVOYANT, RANDOM),
    }
    for key, (where, better, worse) in cases.items():
        texts, changes = [], {}
        for name, x in where:
            ours, other = pair(name, better), pair(name, worse)
            changes[name, x] = nodes.change(SPREAD, ours, other, [x])
            texts.append(
                f"{name} at load {x:g}: {nodes.mean(x, ours, SPREAD):.2f} against "
                f"{nodes.mean(x, other, SPREAD):.2f} ({changes[name, x]:+.0%})"
            )
        yield claim(key, "; ".join(texts), below(changes))


def _idle_time(nodes: Sweep) -> Iterator[Claim]:
    """Yield the claims on Figure 10: what the machine loses."""
    best_two, rivals = (BEST, T_CPU), [name for name in PAPER if name not in (BEST, T_CPU)]
    behind = {
        (name, rival if rival == MCKP else pair(rival)): nodes.change(IDLE, name, rival, LOW)
        for name in best_two
        for rival in (*rivals, MCKP)
    }
    closest = max(behind, key=lambda key: behind[key].value)
    yield claim(
        "fig-10-low-load-best",
        ", ".join(f"{name} {nodes.over(LOW, name, IDLE):.3f}" for name in best_two)
        + f"; closest to them {closest[1]} ({behind[closest]:+.1%})",
        below(behind),
    )

    gained = nodes.changes(IDLE, T_CPU, BEST, HIGH)
    others = [name for name in ALLOCATORS if not name.startswith(T_CPU)]
    first = max((nodes.change(IDLE, T_CPU, name, HIGH) for name in others), key=lambda e: e.value)
    yield claim(
        "fig-10-high-load-t",
        f"{extent(gained)}; against the best of all others {first:+.1%}",
        below(gained),
    )
    gap = nodes.change(SLOWDOWN, T_CPU, BEST, HIGH)
    yield claim(
        "fig-10-there-io-performance",
        f"Mean-I/O-SlowDown of t-cpu {gap:+.1%} against best-bandwidth",
        abs(gap.value) < 0.1,
    )
    against = {name: nodes.change(IDLE, STATIC, name, HIGH) for name in (BEST, N_SYS, T_CPU)}
    low = nodes.change(IDLE, STATIC, BEST, LOW)
    yield claim(
        "fig-10-static-gets-good",
        f"Machine-IdleTime against {each(against, '{} {:+.1%}')}; at low load against "
        f"best-bandwidth {low:+.1%}",
        against[BEST].high < 0,
    )


def _strict(table: Table, nodes: Sweep) -> Claim:
    """Judge Algorithm 1 as it is printed, and with the count that a job has."""
    strict, printed = (
        table.grid(NODES, pair(name), "resources", nodes.loads) for name in (STRICT, T_CPU)
    )
    slowdown, idle = (extent(nodes.changes(m, STRICT, T_CPU)) for m in (SLOWDOWN, IDLE))
    return claim(
        "algorithm-1-strict-comparing-count-job",
        f"Mean-I/O-SlowDown {slowdown}, Machine-IdleTime {idle}",
        all(nodes.change(metric, STRICT, T_CPU).low <= 0 for metric in (SLOWDOWN, IDLE)),
        other=int((strict != printed).sum()),
        sets=strict.size,
    )
