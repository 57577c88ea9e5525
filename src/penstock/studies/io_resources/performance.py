"""Claims of Section VI-A, Figures 5 to 10: what users see, and what the machine loses."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from penstock.report.findings import Claim
from penstock.sim.generators.io_resources import JOBS
from penstock.studies.io_resources.comparisons import (
    BANDWIDTH,
    BEST,
    BY_COUNT,
    BY_JOBS,
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

NEGLIGIBLE = 0.05
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
        *_allocation({jobs: Sweep(table, name) for jobs, name in BY_JOBS.items()}),
        *_placement(nodes),
        _importance(nodes),
        _occupancy(table),
        *_decomposition(table, nodes),
        _mckp(nodes),
        *_spread(nodes),
        *_idle_time(nodes),
        _ranking(nodes),
        _strict(table, nodes),
    ]


def _ahead(
    nodes: Sweep, placer: str, *, significant: bool = False
) -> tuple[list[float], list[str]]:
    """Return the loads at which best-bandwidth has the lowest mean, and who has it elsewhere.

    With `significant`, another has it only where it is significantly lower.
    """
    ahead, beaten = [], []
    others = [name for name in PAPER if name != BEST]
    for x in nodes.loads:
        first = min(others, key=lambda name: nodes.mean(x, pair(name, placer), SLOWDOWN))
        behind = nodes.change(SLOWDOWN, pair(BEST, placer), pair(first, placer), [x])
        if (behind.low if significant else behind.value) > 0:
            beaten.append(f"{first} at {x:g} ({behind:+.1%})")
        else:
            ahead.append(x)
    return ahead, beaten


def _allocation(by_jobs: Mapping[int, Sweep]) -> Iterator[Claim]:
    nodes = by_jobs[JOBS]
    loads = nodes.loads
    lowest = {
        f"K = {jobs}{how}": [
            len(_ahead(sweep, placer, significant=bool(how))[0]) for placer in PLACERS
        ]
        for jobs, sweep in by_jobs.items()
        for how in ("", ", significant losses")
    }
    readings = {name: min(counts) > len(loads) / 2 for name, counts in lowest.items()}
    lost = "; ".join(_ahead(nodes, NON_CLAIRVOYANT)[1])
    yield claim(
        "fig-5-general-best-bandwidth",
        f"lowest at this many of {len(loads)} loads with {' / '.join(PLACERS)} placement: "
        + each({name: " / ".join(map(str, c)) for name, c in lowest.items()}, "{}: {}", "; "),
        next(iter(readings.values())),
        readings=readings,
        lost=f" Above the lowest with {NON_CLAIRVOYANT}, K = 40: {lost}. {TURNS}" if lost else "",
    )

    last, one = nodes.all_loads[-1], loads[-1]
    cases = {f"load {one:g}, K = {jobs}": (sweep, one) for jobs, sweep in by_jobs.items()}
    cases[f"load {last:g}, K = {JOBS}"] = nodes, last
    better = {name: sweep.change(SLOWDOWN, N_SYS, BEST, [x]) for name, (sweep, x) in cases.items()}
    readings = {name: estimate.high < 0 for name, estimate in better.items()}
    parts = {
        name: " + ".join(f"{nodes.mean(one, name, part):.1f}" for part in (BY_COUNT, BY_OTHERS))
        for name in (BEST, N_SYS)
    }
    crossing = {f"K = {jobs}": at(sweep.cutoff()) for jobs, sweep in by_jobs.items()}
    yield claim(
        "fig-5-when-io-load",
        f"{each(better, '{}: {:+.1%}', '; ')}. The two cross {each(crossing, '{1} with {0}')}",
        next(iter(readings.values())),
        readings=readings,
        one=one,
        parts=each(parts, "{1} for {0}", " and "),
        alone=by_jobs[20].mean(one, N_SYS, BY_OTHERS),
    )


def _placement(nodes: Sweep) -> Iterator[Claim]:
    informed = {name: (pair(name, CLAIRVOYANT), pair(name, NON_CLAIRVOYANT)) for name in ALLOCATORS}
    gap = {name: nodes.change(SLOWDOWN, *pairs) for name, pairs in informed.items()}
    by_load = {name: nodes.changes(SLOWDOWN, *pairs) for name, pairs in informed.items()}
    farthest = {
        name: extent(changes) for name, changes in by_load.items() if name in (BEST, N_SYS, T_CPU)
    }
    readings = {
        "at each load": all(
            abs(e.value) < NEGLIGIBLE for changes in by_load.values() for e in changes.values()
        ),
        "over all loads": all(abs(estimate.value) < NEGLIGIBLE for estimate in gap.values()),
    }
    yield claim(
        "fig-5-greedy-clairvoyant-gains",
        f"greedy-clairvoyant against greedy-non-clairvoyant over all loads: "
        f"{each(gap, '{} {:+.1%}')}; at single loads {each(farthest, '{}: {}', '; ')}",
        readings["at each load"],
        readings=readings,
        limit=100 * NEGLIGIBLE,
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


def _importance(nodes: Sweep) -> Claim:
    """Compare how far apart allocators are with how far apart placers are."""

    def spread(x: float, policies: Sequence[str]) -> float:
        means = [nodes.mean(x, policy, SLOWDOWN) for policy in policies]
        return max(means) / min(means)

    def apart(
        allocators: Sequence[str], placers: Sequence[str]
    ) -> dict[float, tuple[float, float]]:
        return {
            x: (
                float(np.mean([spread(x, [pair(a, p) for a in allocators]) for p in placers])),
                float(np.mean([spread(x, [pair(a, p) for p in placers]) for a in allocators])),
            )
            for x in nodes.loads
        }

    informed, greedy = [a for a in PAPER if a != RANDOM], [p for p in PLACERS if p != RANDOM]
    cases = {
        "all policies": apart(PAPER, PLACERS),
        "without random allocation": apart(informed, PLACERS),
        "without random placement": apart(PAPER, greedy),
        "without both": apart(informed, greedy),
    }
    readings = {
        name: all(allocation > placement for allocation, placement in by_load.values())
        for name, by_load in cases.items()
    }
    shown = (nodes.loads[0], 0.2, 0.5, nodes.loads[-1])
    return claim(
        "viii-allocation-more-important",
        "; ".join(
            f"{name}: "
            + ", ".join(f"load {x:g} {by_load[x][0]:.2f} and {by_load[x][1]:.2f}" for x in shown)
            for name, by_load in cases.items()
        ),
        readings["all policies"],
        readings=readings,
    )


def _occupancy(table: Table) -> Claim:
    cases = [(name, 0.5) for name in (BEST, N_SYS, RANDOM)] + [(BEST, 0.2), (BEST, 0.8)]
    by_case = {
        f"{name} at {x:g}": table.mean(NODES, x, pair(name, RANDOM), "follows_jobs")
        for name, x in cases
    }
    return claim("fig-6-occupancy-correlated", each(by_case, "{} {:.2f}"), above(by_case))


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


def _ranking(nodes: Sweep) -> Claim:
    """Compare the order of the allocators in both metrics at low load."""
    swapped, same = [], []

    def order(x: float, metric: str) -> list[str]:
        return sorted(PAPER, key=lambda name: nodes.mean(x, name, metric))

    for x in LOW:
        orders = [order(x, metric) for metric in (SLOWDOWN, IDLE)]
        same.append(orders[0] == orders[1])
        for k, one in enumerate(PAPER):
            for other in PAPER[k + 1 :]:
                slowdown, idle = (nodes.change(m, one, other, [x]) for m in (SLOWDOWN, IDLE))
                if slowdown.high < 0 < idle.low or idle.high < 0 < slowdown.low:
                    swapped.append(
                        f"{one} against {other} at {x:g}: {slowdown:+.0%} and {idle:+.0%}"
                    )
    return claim(
        "fig-10-same-ranking",
        f"the same order of all five at {sum(same)} of {len(LOW)} loads; significantly another "
        f"way round: {'; '.join(swapped) or 'none'}",
        not swapped,
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
