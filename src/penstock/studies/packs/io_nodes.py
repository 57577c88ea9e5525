"""Claims of paper packs, Section 6.2.4, on several I/O nodes; and ours beyond the paper: gaps
filled, barriers dropped, I/O bounded at every moment, any S."""

from collections.abc import Iterator
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from penstock.report.findings import Claim
from penstock.studies.packs.readings import (
    LARGER_JOBS,
    READINGS,
    Reading,
    by_reading,
    over_readings,
)
from penstock.studies.packs.scenarios import (
    BACKFILL,
    BALANCED,
    BASE,
    DOMINANT,
    ERRORS,
    ESTIMATES,
    FIFO,
    FIRST_FIT,
    FRESH,
    IO_NODES,
    IO_NODES_PREFIX,
    MAKESPAN,
    NO_BARRIERS,
    PACK_STRETCH,
    S_1,
    SENSITIVITIES,
    SHARED,
    STRETCH,
    at,
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
from penstock.studies.verdicts import AT_ALL, better_by, contains

PAPER = {1: 1.09, 3: 0.71, 5: 0.53}
"""Geometric means of the makespan over first-fit's, by I/O nodes."""
BINDING = 3.0
"""Up to which S the bound is looked at; chosen with the results at hand."""


def claims(table: Table) -> Iterator[Claim]:
    """Return the claims on several I/O nodes, and ours beyond the paper."""
    parts = (_means, _reason, _choices, _estimates, _backfill, _dominant, _shared)
    return chain.from_iterable(part(table) for part in parts)


def _over(
    table: Table, metric: str, over: str, under: str = FIRST_FIT, drawn: str = IO_NODES_PREFIX
) -> dict[int, Estimate]:
    """Return the mean ratio behind each number of I/O nodes."""
    return {r: relative(table, f"{drawn}-{r}", metric, over, under) for r in IO_NODES}


def _is_the_papers(table: Table, io_nodes: int, reading: Reading) -> bool:
    """Say whether the interval of a mean of Figure 15 contains the paper's."""
    return contains(reading.relative(table, MAKESPAN, S_1, io_nodes), PAPER[io_nodes])


def _means(table: Table) -> Iterator[Claim]:
    def mean_of(reading: Reading, r: int) -> str:
        return f"{reading.relative(table, MAKESPAN, S_1, r):.3f}"

    for r, paper in PAPER.items():
        verdicts = over_readings(partial(_is_the_papers, table, r))
        yield claim.over(
            "fig-15-s-1-io",
            by_reading(partial(mean_of, r=r)),
            verdicts,
            count=len(next(iter(LARGER_JOBS.values())).column(table, S_1, MAKESPAN)),
            larger=by_reading(partial(mean_of, r=r), LARGER_JOBS),
            r=r,
            r_2="" if r == 1 else "s",
            paper=paper,
        )
    ours, stretch = (_over(table, metric, S_1) for metric in (MAKESPAN, PACK_STRETCH))
    falls = {r: estimate.value for r, estimate in ours.items()}
    yield claim(
        "fig-15-relative-makespan-falls",
        each(falls, "{}: {:.2f}"),
        list(falls.values()) == sorted(falls.values(), reverse=True),
    )
    several = [r for r in IO_NODES if r > 1]
    yield claim(
        "6-2-4-outperforms",
        "; ".join(f"{r}: makespan {ours[r]:.2f}, stretch {stretch[r]:.2f}" for r in several),
        all(max(ours[r].high, stretch[r].high) < 1 for r in several),
    )


def _reason(table: Table) -> Iterator[Claim]:
    """Ask which of the paper's two reasons it is: few packs, or wrong estimates of their length."""
    scenario = "io-nodes-5"
    gap = -np.log(relative(table, scenario, MAKESPAN, S_1).value)
    balanced = relative(table, scenario, MAKESPAN, BALANCED)
    recovered = -np.log(balanced.value) / gap
    fit, ours = (column(table, scenario, p, "packs") for p in (FIRST_FIT, S_1))
    moved = ratios(table, scenario, MAKESPAN, BALANCED)
    uneven, even = (mean(column(table, scenario, p, "balance")) for p in (FIRST_FIT, S_1))
    yield claim(
        "6-2-4-s-1-balances",
        f"with 5 I/O nodes first-fit has {fit.mean():.0f} packs on average and at most 5 on "
        f"{(fit <= 5).mean():.0%} of the workloads, S = 1 has {ours.mean():.0f} and "
        f"{(ours <= 5).mean():.0%}; the I/O nodes' mean end over the last is {uneven:.2f} and "
        f"{even:.2f}",
        even.low > uneven.high and relative(table, scenario, "packs", S_1).low > 1,
    )
    yield claim(
        "6-2-4-because-estimates",
        f"first-fit spread by the I/O time of its packs: {balanced:.3f} of first-fit's makespan, "
        f"{recovered:.1%} of what S = 1 gains",
        balanced.high < 1,
        few=_mean_where(moved, fit <= 5),
        more=_mean_where(moved, fit > 5),
        readings=better_by(recovered) | {AT_ALL: balanced.high < 1},
    )
    largest = max(
        np.abs(
            column(table, f"io-nodes-{r}", policy, PACK_STRETCH)
            / column(table, BASE, policy, PACK_STRETCH)
            - 1
        ).max()
        for r in IO_NODES
        for policy in (FIRST_FIT, S_1)
    )
    yield claim(
        "6-2-4-stretch-does-depend", f"largest relative difference {largest:.1g}", largest < 1e-6
    )


def _mean_where(values: Floats, where: NDArray[np.bool_]) -> float:
    return geometric(values[where]).value if where.any() else float("nan")


def _choices(table: Table) -> Iterator[Claim]:
    """Ask whether a way to read the protocol gives all three means of Figure 15."""
    every = {**READINGS, **LARGER_JOBS}
    all_three = [
        name
        for name, reading in every.items()
        if all(_is_the_papers(table, r, reading) for r in PAPER)
    ]
    off = {
        name: max(
            abs(reading.relative(table, MAKESPAN, S_1, r).value / paper - 1)
            for r, paper in PAPER.items()
        )
        for name, reading in READINGS.items()
    }
    nearest = min(off, key=lambda name: off[name])

    def three(one: Reading) -> str:
        return " / ".join(f"{one.relative(table, MAKESPAN, S_1, r).value:.2f}" for r in PAPER)

    yield claim(
        "ours-what-generator-open",
        by_reading(three),
        any(name in READINGS for name in all_three),
        value=" / ".join(f"{value}" for value in PAPER.values()),
        larger=by_reading(three, LARGER_JOBS),
        all_three=", ".join(all_three) or "none",
        nearest=nearest,
        least=100 * off[nearest],
    )


def _estimates(table: Table) -> Iterator[Claim]:
    """Yield claims on estimates of compute time and volume that are wrong by a factor."""

    def means(factor: float, metric: str, policy: str) -> dict[int, Estimate]:
        return {r: at(table, f"{ESTIMATES}-{r}", factor, metric, policy) for r in PAPER}

    def grown(factor: float, policy: str, io_nodes: int) -> float:
        """Return the makespan over that with exact estimates."""
        scenario = f"{ESTIMATES}-{io_nodes}"
        wrong, right = (table.values(scenario, x, policy, MAKESPAN) for x in (factor, ERRORS[0]))
        return geometric(wrong / right).value

    exact = means(ERRORS[0], MAKESPAN, S_1)
    for factor in ERRORS[1:]:
        makespan, stretch = (means(factor, metric, S_1) for metric in (MAKESPAN, PACK_STRETCH))
        own = table.values(f"{ESTIMATES}-1", factor, S_1, PACK_STRETCH)
        yield claim(
            "ours-wrong-estimates",
            f"makespan {each(makespan, '{}: {:.2f}')} (exact {_some(exact)}); mean of the packs' "
            f"largest stretch {own.mean():.1f}, {stretch[1]:.2f} of first-fit's",
            all(max(makespan[r].high, stretch[r].high) < 1 for r in PAPER if r > 1),
            factor=factor,
            fit=grown(factor, FIRST_FIT, 3),
            own=grown(factor, S_1, 3),
        )
    for factor in ERRORS[1:]:
        makespan, stretch = (means(factor, metric, DOMINANT) for metric in (MAKESPAN, STRETCH))
        yield claim(
            "ours-wrong-estimates-dominant",
            "; ".join(
                f"{r}: makespan {makespan[r]:.2f}, largest stretch {stretch[r]:.2f}" for r in PAPER
            ),
            below(makespan, 1) and below(stretch, 1),
            factor=factor,
            fit=grown(factor, FIRST_FIT, 1),
            own=grown(factor, DOMINANT, 1),
        )


def _some(by_io_nodes: dict[int, Estimate]) -> str:
    return " / ".join(f"{by_io_nodes[r].value:.2f}" for r in PAPER)


def _backfill(table: Table) -> Iterator[Claim]:
    makespan = _over(table, MAKESPAN, BACKFILL, S_1)
    stretch = relative(table, BASE, PACK_STRETCH, BACKFILL, S_1)
    alpha = load_of(table, BASE)
    packs, overrun = (ratios(table, BASE, of, BACKFILL, S_1) for of in ("packs", "overrun"))
    loaded, light = alpha > 2, alpha <= 2
    yield claim(
        "ours-backfilling-small-jobs",
        f"makespan {makespan[1]:.3f} of pack-partition's with one I/O node "
        f"({_some(makespan)} with 1 / 3 / 5), stretch {stretch:.3f}",
        makespan[1].high < 1,
        packs=100 * (packs[loaded] == 1).mean(),
        packs_2=geometric(packs[light]).value,
        overrun=geometric(overrun[light]).value,
    )
    makespan = _over(table, MAKESPAN, NO_BARRIERS)
    stretch = relative(table, BASE, STRETCH, NO_BARRIERS)
    own = relative(table, BASE, STRETCH, NO_BARRIERS, S_1)
    yield claim(
        "ours-packs-s-1",
        f"makespan {makespan[1]:.3f} of first-fit's with one I/O node; with 1 / 3 / 5: "
        f"{_some(makespan)}",
        makespan[1].high < 1,
    )
    yield claim(
        "ours-but-give",
        f"largest stretch {stretch:.2f} of first-fit's, {own:.1f} of pack-partition's",
        own.low > 1,
    )


def _dominant(table: Table) -> Iterator[Claim]:
    def both(makespan: dict[int, Estimate], stretch: dict[int, Estimate]) -> str:
        return "; ".join(
            f"{r}: makespan {makespan[r]:.2f}, largest stretch {stretch[r]:.2f}" for r in PAPER
        )

    makespan, stretch = (
        _over(table, metric, DOMINANT, drawn=FRESH) for metric in (MAKESPAN, STRETCH)
    )
    yield claim(
        "ours-dominant-share-s", both(makespan, stretch), below(makespan, 1) and below(stretch, 1)
    )
    makespan, stretch = (
        _over(table, metric, DOMINANT, S_1, FRESH) for metric in (MAKESPAN, STRETCH)
    )
    yield claim(
        "ours-dominant-share-has",
        both(makespan, stretch),
        below(makespan, 1) and all(estimate.value <= 1.1 for estimate in stretch.values()),
    )

    def over_bound(policy: str) -> dict[int, Estimate]:
        parts = {
            r: [column(table, f"{FRESH}-{r}", policy, of) for of in (MAKESPAN, "bound")]
            for r in IO_NODES
        }
        return {r: geometric(makespan / bound) for r, (makespan, bound) in parts.items()}

    contenders = {p: over_bound(p) for p in (FIRST_FIT, S_1, NO_BARRIERS, DOMINANT)}
    yield claim(
        "ours-dominant-share-within",
        "; ".join(f"{policy} {_some(over)}" for policy, over in contenders.items())
        + " of the bound with 1 / 3 / 5 I/O nodes",
        max(estimate.value for estimate in contenders[DOMINANT].values()) <= 1.15,
    )


def _shared(table: Table) -> Iterator[Claim]:
    makespan, stretch = (
        {o: relative(table, "orders", m, of_order(S_1, o), of_order(S_1, FIFO)) for o in SHARED}
        for m in (MAKESPAN, STRETCH)
    )
    yield claim(
        "ours-sharing-bandwidth-interrupting",
        "; ".join(
            f"{o}: largest stretch {stretch[o]:.2f}, makespan {makespan[o]:.2f} of FIFO's"
            for o in SHARED
        ),
        below(stretch, 1),
    )

    one, three = "sensitivity-1", "sensitivity-3"
    lengths, stretches, more = (
        {s: at(table, scenario, s, metric, S_1).value for s in SENSITIVITIES}
        for scenario, metric in ((one, MAKESPAN), (one, STRETCH), (three, MAKESPAN))
    )
    best = min(more, key=lambda s: more[s])
    own, fit = (table.values(one, 5.0, policy, MAKESPAN) for policy in (S_1, FIRST_FIT))
    binding = [s for s in SENSITIVITIES if s <= BINDING]
    rising, falling = (np.diff([of[s] for s in binding]) for of in (stretches, lengths))
    yield claim(
        "ours-one-io-node",
        "makespan and largest stretch over first-fit's: "
        + ", ".join(f"S = {s:g} {m:.2f} {stretches[s]:.2f}" for s, m in lengths.items())
        + f"; with 3 I/O nodes the makespan is shortest at S = {best:g} ({more[best]:.2f})",
        (rising >= -0.01).all() and (falling <= 0.01).all(),
        binding=BINDING,
        own=100 * np.mean(own == fit),
    )
