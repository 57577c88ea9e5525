"""Claims of Section VI-A2, Figure 10: what the machine loses."""

from collections.abc import Iterator
from itertools import chain, combinations

from penstock.report.findings import Claim
from penstock.sim.generators.io_resources import JOBS
from penstock.studies.io_resources.comparisons import (
    BEST,
    HIGH,
    IDLE,
    LOW,
    N_SYS,
    PAPER,
    SLOWDOWN,
    STATIC,
    T_CPU,
    Sweep,
    claim,
    extent,
)
from penstock.studies.io_resources.scenarios import ALLOCATORS, MCKP, RANDOM, pair
from penstock.studies.table import below, each
from penstock.studies.verdicts import at_limits


def claims(nodes: Sweep) -> Iterator[Claim]:
    """Return the claims on Machine-IdleTime."""
    yield from _idle_time(nodes)
    yield _ranking(nodes)


def _idle_time(nodes: Sweep) -> Iterator[Claim]:
    """Yield the claims on the idle time at low and at high load."""
    best_two, rivals = (BEST, T_CPU), [name for name in PAPER if name not in (BEST, T_CPU)]
    behind = {
        where: {
            (name, rival if rival == MCKP else pair(rival)): nodes.change(IDLE, name, rival, loads)
            for name in best_two
            for rival in (*rivals, MCKP)
        }
        for where, loads in nodes.low().items()
    }
    first = next(iter(behind.values()))
    closest = max(first, key=lambda key: first[key].value)
    yield claim.over(
        "fig-10-low-load-best",
        ", ".join(f"{name} {nodes.over(LOW, name, IDLE):.3f}" for name in best_two)
        + f"; closest to them {closest[1]} ({first[closest]:+.1%})",
        {where: below(changes) for where, changes in behind.items()},
    )

    gained = {x: nodes.changes(IDLE, T_CPU, BEST, loads) for x, loads in nodes.high().items()}
    others = [name for name in ALLOCATORS if not name.startswith(T_CPU)]
    best = max((nodes.change(IDLE, T_CPU, name, HIGH) for name in others), key=lambda e: e.value)
    yield claim.over(
        "fig-10-high-load-t",
        f"{extent(next(iter(gained.values())))}; against the best of all others {best:+.1%}",
        {where: below(changes) for where, changes in gained.items()},
        parts=each(
            {
                x: nodes.mean(x, T_CPU, "resources") / nodes.mean(x, BEST, "resources")
                for x in nodes.loads
            },
            "{1:.0%} at {0:g}",
        ),
    )
    gap = {x: nodes.change(SLOWDOWN, T_CPU, BEST, loads) for x, loads in nodes.high().items()}
    yield claim.over(
        "fig-10-there-io-performance",
        f"Mean-I/O-SlowDown of t-cpu against best-bandwidth: {each(gap, '{} {:+.1%}')}",
        {
            f"{where}, {limit}": holds
            for where, estimate in gap.items()
            for limit, holds in _similar(estimate.value).items()
        },
        widths=each({where: 100 * (e.high - e.low) for where, e in gap.items()}, "{} {:.0f}"),
    )
    against = {name: nodes.change(IDLE, STATIC, name, HIGH) for name in (BEST, N_SYS, T_CPU)}
    low = nodes.change(IDLE, STATIC, BEST, LOW)
    yield claim.over(
        "fig-10-static-gets-good",
        f"Machine-IdleTime against {each(against, '{} {:+.1%}')}; at low load against "
        f"best-bandwidth {low:+.1%}",
        {
            where: nodes.change(IDLE, STATIC, BEST, loads).high < 0
            for where, loads in nodes.high().items()
        },
    )


def _similar(change: float) -> dict[str, bool]:
    return at_limits(lambda limit: abs(change) <= limit)


def _ranking(nodes: Sweep) -> Claim:
    """Compare the order of the allocators in both metrics at low load."""

    def order(x: float, metric: str) -> list[str]:
        return sorted(PAPER, key=lambda name: nodes.mean(x, name, metric))

    def swapped(x: float) -> list[str]:
        pairs = []
        for one, other in combinations(PAPER, 2):
            slowdown, idle = (nodes.change(m, one, other, [x]) for m in (SLOWDOWN, IDLE))
            if slowdown.high < 0 < idle.low or idle.high < 0 < slowdown.low:
                pairs.append(f"{one} against {other} at {x:g}: {slowdown:+.0%} and {idle:+.0%}")
        return pairs

    by_load = {x: swapped(x) for loads in nodes.low().values() for x in loads}
    same = [order(x, SLOWDOWN) == order(x, IDLE) for x in LOW]
    return claim.over(
        "fig-10-same-ranking",
        f"the same order of all five at {sum(same)} of {len(LOW)} loads; significantly another "
        f"way round: {'; '.join(chain.from_iterable(by_load.values())) or 'none'}",
        {where: not any(by_load[x] for x in loads) for where, loads in nodes.low().items()},
        first=LOW[0],
        large_resources=_static_and_random(nodes, "large_resources"),
        resources=_static_and_random(nodes, "resources", scale=1 / JOBS),
        large_slowdown=_static_and_random(nodes, "large_slowdown"),
        slowdown=_static_and_random(nodes, SLOWDOWN),
    )


def _static_and_random(nodes: Sweep, metric: str, scale: float = 1.0) -> str:
    """Return a mean at the lowest load under both, static's first."""
    return " and ".join(
        f"{scale * nodes.mean(LOW[0], name, metric):.1f}" for name in (STATIC, RANDOM)
    )
