"""Claims of Section VI-A, Figures 5 to 9: what users see, and how evenly I/O nodes are used."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from penstock.report.findings import Claim
from penstock.sim.generators.io_resources import JOBS
from penstock.studies.io_resources import machine
from penstock.studies.io_resources.comparisons import (
    BANDWIDTH,
    BEST,
    BY_COUNT,
    BY_JOBS,
    BY_OTHERS,
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
from penstock.studies.verdicts import LADDER, at_limits

SHARED_OUT = 19
"""I/O nodes that mckp gives exclusively: all but the one that is shared."""


def claims(table: Table) -> list[Claim]:
    """Return the claims on users' slowdown, I/O-spread and Machine-IdleTime."""
    nodes = Sweep(table, NODES)
    return [
        *_allocation(table, {jobs: Sweep(table, name) for jobs, name in BY_JOBS.items()}),
        *_placement(nodes),
        _importance(nodes),
        _occupancy(table),
        *_decomposition(table, nodes),
        _mckp(nodes),
        *_spread(nodes),
        *machine.claims(nodes),
        _strict(table, nodes),
    ]


def _ahead(nodes: Sweep, placer: str, *, without: str = "") -> tuple[list[float], list[str]]:
    """Return the loads at which best-bandwidth has the lowest mean, and who has it elsewhere."""
    ahead, beaten = [], []
    others = [name for name in PAPER if name not in (BEST, without)]
    for x in nodes.loads:
        first = min(others, key=lambda name: nodes.mean(x, pair(name, placer), SLOWDOWN))
        behind = nodes.change(SLOWDOWN, pair(BEST, placer), pair(first, placer), [x])
        if behind.value > 0:
            beaten.append(f"{first} at {x:g} ({behind:+.1%})")
        else:
            ahead.append(x)
    return ahead, beaten


def _same_counts(table: Table, nodes: Sweep) -> str:
    """Say at which loads t-cpu assigns as many I/O nodes as best-bandwidth."""
    ours, other = (
        table.grid(NODES, pair(name), "resources", nodes.loads) for name in (T_CPU, BEST)
    )
    same = dict(zip(nodes.loads, (ours == other).mean(axis=0), strict=True))
    return each(same, "{1:.0%} at {0:g}")


def _allocation(table: Table, by_jobs: Mapping[int, Sweep]) -> Iterator[Claim]:
    nodes = by_jobs[JOBS]
    loads = nodes.loads
    lowest, without = (
        {
            f"K = {jobs}": [len(_ahead(sweep, placer, without=name)[0]) for placer in PLACERS]
            for jobs, sweep in by_jobs.items()
        }
        for name in ("", T_CPU)
    )
    readings = {name: min(counts) > len(loads) / 2 for name, counts in lowest.items()}
    lost = "; ".join(_ahead(nodes, NON_CLAIRVOYANT)[1])
    yield claim.over(
        "fig-5-general-best-bandwidth",
        f"lowest at this many of {len(loads)} loads with {' / '.join(PLACERS)} placement: "
        + each({name: " / ".join(map(str, c)) for name, c in lowest.items()}, "{}: {}", "; "),
        readings,
        lost=lost,
        without=each({k: " / ".join(map(str, c)) for k, c in without.items()}, "{}: {}", "; "),
        same=_same_counts(table, nodes),
    )

    last, one = nodes.all_loads[-1], loads[-1]
    cases = {f"load {one:g}, K = {jobs}": (sweep, one) for jobs, sweep in by_jobs.items()}
    better = {name: sweep.change(SLOWDOWN, N_SYS, BEST, [x]) for name, (sweep, x) in cases.items()}
    readings = {name: estimate.high < 0 for name, estimate in better.items()}
    beyond = nodes.change(SLOWDOWN, N_SYS, BEST, [last])
    parts = {
        name: " + ".join(f"{nodes.mean(one, name, part):.1f}" for part in (BY_COUNT, BY_OTHERS))
        for name in (BEST, N_SYS)
    }
    crossing = {f"K = {jobs}": at(sweep.cutoff()) for jobs, sweep in by_jobs.items()}
    yield claim.over(
        "fig-5-when-io-load",
        f"{each(better, '{}: {:+.1%}', '; ')}. The two cross {each(crossing, '{1} with {0}')}; "
        f"{beyond:+.1%} at load {last:g}, K = {JOBS}",
        readings,
        one=one,
        parts=each(parts, "{1} for {0}", " and "),
        counts=each(
            {n: nodes.mean(one, n, "resources") / JOBS for n in (BEST, N_SYS)}, "{} {:.1f}"
        ),
        alone=by_jobs[20].mean(one, N_SYS, BY_OTHERS),
    )


def _placement(nodes: Sweep) -> Iterator[Claim]:
    informed = {name: (pair(name, CLAIRVOYANT), pair(name, NON_CLAIRVOYANT)) for name in ALLOCATORS}
    gap = {name: nodes.change(SLOWDOWN, *pairs) for name, pairs in informed.items()}
    by_load = {name: nodes.changes(SLOWDOWN, *pairs) for name, pairs in informed.items()}
    farthest = {
        name: extent(changes) for name, changes in by_load.items() if name in (BEST, N_SYS, T_CPU)
    }
    most = {
        "over all loads": max(abs(e.value) for e in gap.values()),
        "at each load": max(abs(e.value) for one in by_load.values() for e in one.values()),
    }
    readings = {
        f"{where}, {limit:.0%}": value <= limit for where, value in most.items() for limit in LADDER
    }
    yield claim.over(
        "fig-5-greedy-clairvoyant-gains",
        f"greedy-clairvoyant against greedy-non-clairvoyant over all loads: "
        f"{each(gap, '{} {:+.1%}')}; at single loads {each(farthest, '{}: {}', '; ')}",
        readings,
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
    return claim.over(
        "viii-allocation-more-important",
        "; ".join(
            f"{name}: "
            + ", ".join(f"load {x:g} {by_load[x][0]:.2f} and {by_load[x][1]:.2f}" for x in shown)
            for name, by_load in cases.items()
        ),
        readings,
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
        f"{low}, {high}": {
            f"{name} at {part}": nodes.change(BY_OTHERS, BEST, name, where)
            for name in (N_SYS, STATIC)
            for part, where in (("low", light), ("high", heavy))
        }
        for (low, light), (high, heavy) in zip(
            nodes.low().items(), nodes.high().items(), strict=True
        )
    }
    own_time = {
        name: nodes.over(LOW, name, BY_OTHERS) / nodes.over(LOW, name, BY_COUNT)
        for name in (BEST, STATIC)
    }
    yield claim("fig-8-best-bandwidth-rho-io", f"largest distance from 1: {own:.1e}", own < 1e-12)
    yield claim.over(
        "fig-8-best-bandwidth-pays",
        each(next(iter(others.values())), "{1:+.0%} above {0} load"),
        {name: above(changes) for name, changes in others.items()},
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
    yield claim.over(
        "fig-9-best-bandwidth-rho-con",
        f"slope {steep:.2f}, R^2 = {straight:.3f}",
        at_limits(lambda limit: steep > 0 and 1 - straight <= limit),
    )
    yield claim(
        "fig-9-rho-con-n-sys",
        each(lines, "{} slope {[0]:.2f}"),
        all(lines[name][0] < steep for name in (N_SYS, T_CPU)),
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
