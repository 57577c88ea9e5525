"""Claims of paper packs, Section 6.2.3: one I/O node, packs by Algorithm 1 against first-fit."""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from scipy import stats

from penstock.report.findings import Claim
from penstock.studies.packs.readings import (
    LARGER_JOBS,
    OWN,
    READINGS,
    Reading,
    by_reading,
    over_limits,
    over_readings,
)
from penstock.studies.packs.scenarios import (
    BASE,
    BEYOND_LOADS,
    FIFO,
    FIRST_FIT,
    FRESH,
    HIGHER_LOADS,
    JOB_COUNTS,
    LONGEST_REMAINING,
    MAKESPAN,
    MORE_JOBS,
    ORDERS,
    PACK_STRETCH,
    S_1,
    S_ALPHA,
    STRETCH,
    at,
    by_load,
    claim,
    column,
    geometric,
    load_of,
    mean,
    of_order,
    ratios,
    relative,
)
from penstock.studies.table import Estimate, Floats, Table, below, each
from penstock.studies.verdicts import at_limits, contains

NO_IMPACT = 0.05
"""Our own limit, for our own claim."""
WIDE = READINGS["sizes geometric"]
"""The reading whose sizes spread most."""
OVERHEAD = (0.09, 0.1)
"""The paper's figure for Figure 10, in 6.2.4 and 6.2.3."""
LOADED = 8.0
"""Loads above which first-fit's overrun is explained."""
WITHIN = 1.2
"""The length over the contention-free one that executions stay within (Figure 13)."""
WORST = 10.0
"""First-fit "can be as bad as 1000%"."""
TIGHTER = (1.0, 0.75, 0.5)
"""Bounds on the I/O of a pack: the paper's, and lower ones."""
LEVELS = (S_1, LONGEST_REMAINING)
MOVED = 0.25
"""The part of the time that moves from delay to idle in Figure 14."""


def claims(table: Table) -> Iterator[Claim]:
    """Return the claims on a single I/O node."""
    parts = (_overhead, _stretch, _alpha, _overrun, _node_time, _orders)
    return chain.from_iterable(part(table) for part in parts)


def _spread(by_bin: dict[float, Estimate]) -> str:
    ends = (min(by_bin), max(by_bin))
    return " to ".join(f"{by_bin[x].value:.2f} (alpha {x:.1f})" for x in ends)


def _overhead(table: Table) -> Iterator[Claim]:
    alpha = load_of(table, BASE)
    off = alpha / np.repeat(table.points(BASE), len(alpha) // len(table.points(BASE)))
    yield claim(
        "6-2-2-protocol-covers-io",
        f"alpha {alpha.min():.2f} to {alpha.max():.1f}; median of alpha / alpha_gen "
        f"{np.median(off):.2f}, from {off.min():.2f} to {off.max():.2f}",
        abs(np.median(off) - 1) < 0.1 and alpha.min() < 1 and alpha.max() > 9,
    )
    longest = max(
        column(table, "orders", of_order(packer, order), "pack_bound").max()
        for packer in (FIRST_FIT, S_1)
        for order in ORDERS
    )
    yield claim(
        "theorem-1-any-list-order",
        f"no pack took more than {longest:.4f} of max T + sum of I/O, under all 8 orders",
        longest <= 1,
    )

    def over(reading: Reading) -> Estimate:
        return mean(reading.ratios(table, MAKESPAN, S_1) - 1)

    verdicts = over_readings(lambda reading: contains(over(reading), *OVERHEAD))
    yield claim.over(
        "fig-10-one-io-node",
        by_reading(lambda reading: f"{over(reading):+.1%}"),
        verdicts,
        spread=_spread(by_load(alpha, ratios(table, BASE, MAKESPAN, S_1))),
        larger=by_reading(lambda reading: f"{over(reading).value:+.1%}", LARGER_JOBS),
        looser=100 * (at(table, "sensitivity-1", 1.25, MAKESPAN, S_1).value - 1),
    )


def _stretch(table: Table) -> Iterator[Claim]:
    by_bin = by_load(load_of(table, BASE), ratios(table, BASE, PACK_STRETCH, S_1))
    whole, longest = (relative(table, BASE, metric, S_1) for metric in (PACK_STRETCH, STRETCH))
    light = load_of(table, BASE) < 1
    own, fit = (column(table, BASE, p, PACK_STRETCH)[light].mean() for p in (S_1, FIRST_FIT))
    readings = {
        "in every bin of alpha": below(by_bin, 1),
        "in every bin with alpha above 1": below({x: e for x, e in by_bin.items() if x > 1}, 1),
        "over all workloads": whole.high < 1,
    }
    yield claim.over(
        "fig-11-s-1-stretch",
        f"{whole:.2f} of first-fit's (mean of the packs' largest); {_spread(by_bin)}; largest of "
        f"all jobs {longest:.2f}",
        readings,
        own=own,
        fit=fit,
    )

    def ours(reading: Reading) -> float:
        return float(reading.column(table, S_1, PACK_STRETCH).mean())

    verdicts = over_limits(lambda reading, limit: ours(reading) <= 1 + limit)
    fifo, shared, held = (
        mean(column(table, "orders", of_order(S_1, o), PACK_STRETCH)).value
        for o in (FIFO, "fair-share", "greedy-yield")
    )
    yield claim.over(
        "6-2-3-s-1-intuitively",
        f"mean of the packs' largest: {by_reading(lambda reading: f'{ours(reading):.2f}')}",
        verdicts,
        fifo=fifo,
        shared=shared,
        held=held,
        tighter=each(
            {s: table.values("sensitivity-1", s, S_1, PACK_STRETCH).mean() for s in TIGHTER},
            "S = {:g} {:.2f}",
        ),
    )


def _alpha(table: Table) -> Iterator[Claim]:
    loose, strict = (relative(table, BASE, MAKESPAN, policy) for policy in (S_ALPHA, S_1))

    def mitigates(reading: Reading) -> bool:
        own, other = (reading.relative(table, MAKESPAN, policy) for policy in (S_ALPHA, S_1))
        return own.high < other.low

    verdicts = over_readings(mitigates)
    yield claim.over(
        "6-2-3-s-alpha-mitigates",
        f"{loose:.3f} of first-fit's, S = 1 {strict:.3f}",
        verdicts,
    )
    alpha = load_of(table, BASE)
    same = column(table, BASE, S_ALPHA, MAKESPAN) == column(table, BASE, FIRST_FIT, MAKESPAN)

    def lower(reading: Reading) -> float:
        return float((reading.ratios(table, PACK_STRETCH, S_ALPHA) < 1).mean())

    def both(reading: Reading) -> str:
        mean = reading.relative(table, PACK_STRETCH, S_ALPHA).value
        return f"{mean:.2f} ({lower(reading):.0%})"

    verdicts = over_readings(lambda reading: lower(reading) > 0.5)
    ours = by_reading(both)
    yield claim.over(
        "6-2-3-s-alpha-maintains",
        f"stretch over first-fit's (part of the workloads on which it is lower): {ours}",
        verdicts,
        same=100 * same.mean(),
        same_2=100 * same[alpha > 5].mean(),
        same_wide=100 * (WIDE.ratios(table, MAKESPAN, S_ALPHA) == 1).mean(),
        larger=by_reading(both, LARGER_JOBS),
    )
    yield from _packs(table)


def _packs(table: Table) -> Iterator[Claim]:
    """Yield the claims on Figure 12."""

    def bins(reading: Reading, policy: str) -> dict[float, Estimate]:
        load = reading.column(table, FIRST_FIT, "alpha")
        return by_load(load, reading.ratios(table, "packs", policy))

    def rises(reading: Reading) -> tuple[float, float]:
        load = reading.column(table, FIRST_FIT, "alpha")
        correlation = stats.spearmanr(load, reading.ratios(table, "packs", S_1))
        return float(correlation.statistic), float(correlation.pvalue)

    def grows(reading: Reading) -> bool:
        correlation, chance = rises(reading)
        return correlation > 0 and chance < 0.05

    def ends(reading: Reading, policy: str) -> tuple[float, float]:
        # A few workloads fill no bin, and are one.
        whole = reading.relative(table, "packs", policy).value
        values = [estimate.value for estimate in bins(reading, policy).values()] or [whole]
        return min(values), max(values)

    def constant(reading: Reading, limit: float) -> bool:
        low, high = ends(reading, S_ALPHA)
        fewer = reading.ratios(table, "packs", S_ALPHA, under=S_1)
        return high <= (1 + limit) * low and geometric(fewer).high < 1

    verdicts = over_readings(grows)
    yield claim.over(
        "fig-12-s-1-number",
        f"{_spread(bins(OWN, S_1))}; correlation {by_reading(lambda one: f'{rises(one)[0]:.2f}')}",
        verdicts,
    )
    verdicts = over_limits(constant)
    spread = by_reading(lambda one: "{:.2f} to {:.2f}".format(*ends(one, S_ALPHA)))
    yield claim.over(
        "fig-12-s-alpha-ratio",
        f"over the bins of alpha: {spread}",
        verdicts,
        by_load=_spread(bins(OWN, S_ALPHA)),
    )


def _overrun(table: Table) -> Iterator[Claim]:
    def over(reading: Reading) -> Floats:
        return reading.column(table, S_1, "overrun")

    verdicts = over_readings(lambda reading: bool(over(reading).max() <= WITHIN))

    def longer(one: Reading) -> str:
        mean, part = over(one).mean() - 1, (over(one) <= WITHIN).mean()
        return f"{mean:.0%} ({part:.0%} of them)"

    yield claim.over(
        "fig-13-s-1-execution",
        f"longer on average (within 20%): {by_reading(longer)}",
        verdicts,
        beyond=_beyond(table, over(OWN)),
        larger=by_reading(longer, LARGER_JOBS),
    )

    def worst(reading: Reading, io_nodes: int = 1) -> float:
        return float(reading.column(table, FIRST_FIT, "overrun", io_nodes).max())

    verdicts = over_readings(lambda reading: worst(reading) >= WORST)
    yield claim.over(
        "fig-13-first-fit-can",
        f"at most, with one I/O node: {by_reading(lambda one: f'{worst(one):.0%}')}",
        verdicts,
        worst=100 * WORST,
        three=100 * worst(OWN, 3),
        **_why_not_worse(table),
    )

    def close(reading: Reading) -> float:
        return reading.relative(table, "overrun", S_ALPHA).value

    verdicts = over_limits(lambda reading, limit: abs(close(reading) - 1) <= limit)
    yield claim.over(
        "fig-13-s-alpha-close",
        f"of first-fit's overrun: {by_reading(lambda one: f'{close(one):.3f}')}",
        verdicts,
        same=100 * (OWN.ratios(table, MAKESPAN, S_ALPHA) == 1).mean(),
        same_wide=100 * (WIDE.ratios(table, MAKESPAN, S_ALPHA) == 1).mean(),
    )


def filled(table: Table, scenario: str, policy: str, points: Sequence[float] | None) -> Floats:
    """Return the part of the nodes that jobs would use on average if none waited for I/O."""
    used, over = (column(table, scenario, policy, of, points) for of in ("executing", "overrun"))
    return used * over


def io_part(
    table: Table, scenario: str, policy: str, points: Sequence[float] | None = None
) -> Floats:
    """Return all I/O time over the contention-free length, with one I/O node.

    I/O takes alpha times as long as the jobs' useful time on all nodes (Eq. 6). The overrun is at
    least this, because all I/O must be done, and at most one more: by Theorem 1 a pack ends within
    its longest job plus its I/O.
    """
    alpha = column(table, scenario, policy, "alpha", points)
    return alpha * filled(table, scenario, policy, points)


def _why_not_worse(table: Table) -> dict[str, object]:
    """Return what decides first-fit's overrun, and the overrun when that is changed."""
    over, alpha = (column(table, BASE, FIRST_FIT, of) for of in ("overrun", "alpha"))
    io = io_part(table, BASE, FIRST_FIT)
    loaded = alpha > LOADED

    def reached(scenario: str, x: float) -> str:
        part = filled(table, scenario, FIRST_FIT, [x]).mean()
        most = table.values(scenario, x, FIRST_FIT, "overrun").max()
        return f"{most:.0%} ({part:.0%} of the nodes in use)"

    few, many = JOB_COUNTS
    return {
        "gap": float((over - io).max()),
        "follows": float(np.corrcoef(io, over)[0, 1]),
        "by_alpha": float(np.corrcoef(alpha, over)[0, 1]),
        "loaded": LOADED,
        "filled": f"{filled(table, BASE, FIRST_FIT, None)[loaded].mean():.0%}",
        "few": int(few),
        "many": int(many),
        "few_reach": reached(MORE_JOBS, few),
        "many_reach": reached(MORE_JOBS, many),
        "loads": "; ".join(f"{x:g}: {reached(HIGHER_LOADS, x)}" for x in BEYOND_LOADS),
        "fresh": f"{column(table, f'{FRESH}-1', FIRST_FIT, 'overrun').max():.0%}",
    }


def _beyond(table: Table, over: Floats) -> str:
    """Say at which loads S = 1 is more than 20% above the contention-free length."""
    by_bin = by_load(load_of(table, BASE), (over <= WITHIN).astype(float), mean)
    least = min(by_bin, key=lambda x: by_bin[x].value)
    busy = np.median(io_part(table, BASE, S_1))
    parts = {
        s: (table.values("sensitivity-1", s, S_1, "overrun") <= WITHIN).mean() for s in TIGHTER
    }
    return (
        f"S = 1 lets the I/O of a pack last as long as the pack: it is {busy:.0%} of the "
        "contention-free length in the median workload. With lower bounds on the same workloads "
        f"(scenario 'sensitivity-1') these are within 20%: "
        f"{each(parts, 'S = {:g} {:.0%}')}. By load, fewest are within at alpha {least:.1f}: "
        f"{by_bin[least].value:.0%}; the median workload is {np.median(over) - 1:.1%} longer."
    )


def _node_time(table: Table) -> Iterator[Claim]:
    def part(reading: Reading, policy: str, what: str) -> Floats:
        """Return a part of the node time, in units of first-fit's whole."""
        own = reading.column(table, policy, what)
        return own * reading.ratios(table, MAKESPAN, policy)

    def moved(reading: Reading, what: str) -> Estimate:
        return mean(part(reading, S_1, what) - part(reading, FIRST_FIT, what))

    verdicts = over_readings(lambda one: contains(-moved(one, "delayed"), MOVED))
    lost = part(OWN, FIRST_FIT, "delayed") - part(OWN, S_1, "delayed")
    yield claim.over(
        "fig-14-s-1-25",
        "delay and idle, of first-fit's node time: "
        + by_reading(lambda one: f"{moved(one, 'delayed'):+.0%} {moved(one, 'idle').value:+.0%}"),
        verdicts,
        spread=_spread(by_load(load_of(table, BASE), lost, mean)),
        up_to=moved_up_to(load_of(table, BASE), lost),
        moved=100 * MOVED,
        larger=by_reading(lambda one: f"{moved(one, 'delayed').value:+.0%}", LARGER_JOBS),
    )
    delayed, idle, useful = (moved(OWN, what).value for what in ("delayed", "idle", "executing"))
    yield claim(
        "fig-14-what-makespan-grows",
        f"idle grows by {idle + delayed:.0%} more than delay falls; useful time changes by "
        f"{100 * abs(useful):.1g}%",
        idle > -delayed and abs(useful) < 1e-9,
    )


def moved_up_to(alpha: Floats, lost: Floats) -> str:
    """Say up to which load the mean of what moves from delay to idle is the paper's or less."""
    order = np.argsort(alpha)
    means = np.cumsum(lost[order]) / np.arange(1, len(lost) + 1)
    below = np.flatnonzero(means <= MOVED)
    if not len(below):
        return "more at every load"
    last = int(below[-1])
    if last == len(lost) - 1:
        return f"{means[last]:.0%} over all"
    return (
        f"{means[last]:.0%} over the {last + 1} workloads with alpha up to "
        f"{alpha[order][last]:.1f}, {lost[order][last + 1 :].mean():.0%} over the others"
    )


def _orders(table: Table) -> Iterator[Claim]:
    """Yield the claims on list orders inside packs: the one that the paper ran, then all."""
    for metric, form, name in ((MAKESPAN, ".3f", "makespan"), (PACK_STRETCH, ".2f", "stretch")):
        remaining = relative(table, BASE, metric, LONGEST_REMAINING, S_1)
        moved = abs(remaining.value - 1)
        readings = at_limits(lambda limit, moved=moved: moved <= limit)  # type: ignore[misc]
        yield claim.over(
            "6-2-3-io-scheduling-policy",
            f"longest-remaining {remaining:{form}} of FIFO's",
            readings,
            metric=name,
            count=len(column(table, BASE, S_1, metric)),
            levels=each({p: relative(table, BASE, metric, p).value for p in LEVELS}, "{} {:.2f}"),
        )
    for metric, form, name in ((MAKESPAN, ".3f", "makespan"), (PACK_STRETCH, ".2f", "stretch")):
        changes = {
            order: relative(table, "orders", metric, of_order(S_1, order), of_order(S_1, FIFO))
            for order in ORDERS
            if order != FIFO
        }
        yield claim(
            "ours-no-list-order",
            "of FIFO's: " + ", ".join(f"{o} {changes[o]:{form}}" for o in changes),
            all(abs(e.value - 1) < NO_IMPACT for e in changes.values()),
            metric=name,
            limit=100 * NO_IMPACT,
            raised=", ".join(o for o, e in changes.items() if e.low > 1) or "none",
            lowered=", ".join(o for o, e in changes.items() if e.high < 1) or "none",
            count=len(column(table, "orders", of_order(S_1, FIFO), metric)),
        )
