"""Claims of paper packs, Section 6.2.3: one I/O node, packs by Algorithm 1 against first-fit."""

from collections.abc import Iterator
from itertools import chain

import numpy as np

from penstock.report.findings import Claim
from penstock.studies.packs.scenarios import (
    BASE,
    FEWEST,
    FIFO,
    FIRST_FIT,
    LONGEST_REMAINING,
    MAKESPAN,
    ORDERS,
    PACK_STRETCH,
    S_1,
    S_ALPHA,
    STRETCH,
    VARIANTS,
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
from penstock.studies.table import Estimate, Floats, Table

NO_IMPACT = 0.05
OVERHEAD = (0.05, 0.15)
"""What passes for the paper's 10%, in Figure 10 and, with one I/O node, in Figure 15."""
MOST = 0.9
"""The part of the workloads that a statement on "the" execution must be true of."""


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

    by_workload = {r: ratios(table, f"io-nodes-{r}", MAKESPAN, S_1) for r in (1, 3, 5)}
    over = mean(by_workload[1] - 1)
    variants = [at(table, "choices-1", k, MAKESPAN, S_1).value for k in range(len(VARIANTS))]
    # Up to which load the mean would be the paper's, and what that would make of its others.
    upper = min(
        (a for a in range(1, 10) if (alpha < a).sum() >= FEWEST),
        key=lambda a: abs(geometric(by_workload[1][alpha < a]).value - 1.09),
    )
    cut = {r: geometric(values[alpha < upper]).value for r, values in by_workload.items()}
    yield claim(
        "fig-10-one-io-node",
        f"{over:+.1%}",
        OVERHEAD[0] <= over.value <= OVERHEAD[1],
        spread=_spread(by_load(alpha, by_workload[1])),
        variants=min(variants),
        variants_2=max(variants),
        upper=upper,
        cut=cut[1],
        cut_2=cut[3],
        cut_3=cut[5],
        looser=100 * (at(table, "sensitivity-1", 1.25, MAKESPAN, S_1).value - 1),
    )


def _stretch(table: Table) -> Iterator[Claim]:
    by_bin = by_load(load_of(table, BASE), ratios(table, BASE, PACK_STRETCH, S_1))
    whole, longest = (relative(table, BASE, metric, S_1) for metric in (PACK_STRETCH, STRETCH))
    yield claim(
        "fig-11-s-1-stretch",
        f"{whole:.2f} of first-fit's (mean of the packs' largest); {_spread(by_bin)}; largest of "
        f"all jobs {longest:.2f}",
        all(estimate.high < 1 for x, estimate in by_bin.items() if x > 2),
    )
    ours = mean(column(table, BASE, S_1, PACK_STRETCH))
    fifo, shared, held = (
        mean(column(table, "orders", of_order(S_1, o), PACK_STRETCH)).value
        for o in (FIFO, "fair-share", "greedy-yield")
    )
    yield claim(
        "6-2-3-s-1-intuitively",
        f"mean of the packs' largest {ours:.2f}",
        ours.value < 1.25,
        fifo=fifo,
        shared=shared,
        held=held,
    )


def _alpha(table: Table) -> Iterator[Claim]:
    loose, strict = (relative(table, BASE, MAKESPAN, policy) for policy in (S_ALPHA, S_1))
    yield claim(
        "6-2-3-s-alpha-mitigates",
        f"{loose:.3f} of first-fit's, S = 1 {strict:.3f}",
        loose.high < strict.low,
    )
    alpha = load_of(table, BASE)
    stretch = relative(table, BASE, PACK_STRETCH, S_ALPHA)
    same = column(table, BASE, S_ALPHA, MAKESPAN) == column(table, BASE, FIRST_FIT, MAKESPAN)
    less = ratios(table, BASE, PACK_STRETCH, S_ALPHA) < 1
    variants = {
        name: at(table, "choices-1", k, PACK_STRETCH, S_ALPHA).value
        for k, name in enumerate(VARIANTS)
    }
    best = min(variants, key=lambda name: variants[name])
    yield claim(
        "6-2-3-s-alpha-maintains",
        f"stretch {stretch:.2f} of first-fit's; lower on {less.mean():.0%} of the workloads",
        less.mean() > 0.5 and stretch.high < 1,
        same=100 * same.mean(),
        same_2=100 * same[alpha > 5].mean(),
        variants=variants[best],
        best=best,
    )

    packs = {policy: ratios(table, BASE, "packs", policy) for policy in (S_1, S_ALPHA)}
    by_bin = {policy: by_load(alpha, values) for policy, values in packs.items()}
    rises = np.corrcoef(alpha, packs[S_1])[0, 1]
    values, highest = (
        [estimate.value for estimate in by_bin[policy].values()] for policy in (S_ALPHA, S_1)
    )
    yield claim(
        "fig-12-s-1-number", f"{_spread(by_bin[S_1])}; correlation {rises:.2f}", rises > 0.5
    )
    yield claim(
        "fig-12-s-alpha-ratio",
        f"{min(values):.2f} to {max(values):.2f} over the bins of alpha",
        max(values) - min(values) < 0.25 and max(values) < max(highest) / 2,
    )


def _overrun(table: Table) -> Iterator[Claim]:
    over, fit = (column(table, BASE, p, "overrun") for p in (S_1, FIRST_FIT))
    within = (over <= 1.2).mean()
    yield claim(
        "fig-13-s-1-execution",
        f"{mean(over - 1):.1%} longer on average, {over.max() - 1:.0%} at most; {within:.0%} of "
        "workloads within 20%",
        within >= MOST,
        beyond=_beyond(table, over),
    )
    geometric_sizes = list(VARIANTS).index("sizes geometric")
    yield claim(
        "fig-13-first-fit-can",
        f"{fit.max():.0%} at most with one I/O node (mean {fit.mean():.0%}), "
        f"{column(table, 'io-nodes-3', FIRST_FIT, 'overrun').max():.0%} with three",
        fit.max() >= 8,
        value=100 * table.values("choices-3", geometric_sizes, FIRST_FIT, "overrun").max(),
    )
    close = relative(table, BASE, "overrun", S_ALPHA)
    yield claim(
        "fig-13-s-alpha-close", f"{close:.3f} of first-fit's overrun", abs(close.value - 1) < 0.1
    )


def _beyond(table: Table, over: Floats) -> str:
    """Say at which loads S = 1 is more than 20% above the contention-free length."""
    by_bin = by_load(load_of(table, BASE), (over <= 1.2).astype(float), mean)
    least = min(by_bin, key=lambda x: by_bin[x].value)
    return (
        f"By load, fewest are within at alpha {least:.1f}: {by_bin[least].value:.0%}; the "
        f"median workload is {np.median(over) - 1:.1%} longer."
    )


def _node_time(table: Table) -> Iterator[Claim]:
    base = column(table, BASE, FIRST_FIT, MAKESPAN)

    def part(policy: str, what: str) -> float:
        own = column(table, BASE, policy, MAKESPAN) * column(table, BASE, policy, what)
        return float((own / base).mean())

    delayed, idle, useful = (
        part(S_1, what) - part(FIRST_FIT, what) for what in ("delayed", "idle", "executing")
    )
    fit, ours = (column(table, BASE, policy, "delayed") for policy in (FIRST_FIT, S_1))
    lost = fit - ratios(table, BASE, MAKESPAN, S_1) * ours
    yield claim(
        "fig-14-s-1-25",
        f"delay {delayed:+.0%}, idle {idle:+.0%} of first-fit's node time",
        abs(-delayed - 0.25) <= 0.05,
        spread=_spread(by_load(load_of(table, BASE), lost, mean)),
    )
    yield claim(
        "fig-14-what-makespan-grows",
        f"idle grows by {idle + delayed:.0%} more than delay falls; useful time changes by "
        f"{100 * abs(useful):.1g}%",
        idle > -delayed and abs(useful) < 1e-9,
    )


def _orders(table: Table) -> Iterator[Claim]:
    for key, metric, form in (
        ("6-2-3-io-scheduling-policy", MAKESPAN, ".3f"),
        ("6-2-3-io-scheduling-policy-2", PACK_STRETCH, ".2f"),
    ):
        changes = {
            order: relative(table, "orders", metric, of_order(S_1, order), of_order(S_1, FIFO))
            for order in ORDERS
        }
        worst = max(ORDERS, key=lambda order: abs(np.log(changes[order].value)))
        remaining = relative(table, BASE, metric, LONGEST_REMAINING, S_1)
        yield claim(
            key,
            f"longest-remaining {remaining:{form}} of FIFO's with S = 1; of all orders {worst} "
            f"differs most, {changes[worst]:{form}}",
            max(abs(e.value - 1) for e in (remaining, changes[worst])) < NO_IMPACT,
        )
