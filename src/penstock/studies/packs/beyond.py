"""Ours beyond paper packs: gaps filled, barriers dropped, I/O bounded at every moment, any S."""

import numpy as np

from penstock.report.findings import Claim
from penstock.studies.claims import load as claims_of
from penstock.studies.packs.ratios import (
    MAKESPAN,
    PACK_STRETCH,
    STRETCH,
    column,
    geometric,
    load_of,
    ratios,
    relative,
)
from penstock.studies.packs.scenarios import (
    BACKFILL,
    DOMINANT,
    FIFO,
    FIRST_FIT,
    IO_NODES,
    NO_BARRIERS,
    S_1,
    SENSITIVITIES,
    SHARED,
    of_order,
)
from penstock.studies.table import Estimate, Table

claim = claims_of("packs")

NEXT = "named as next (Section 7)"
OURS = "not in the paper"
BINDING = 3.0
"""Up to which S the bound is looked at; chosen with the results at hand."""


def claims(table: Table) -> list[Claim]:
    """Return the claims beyond the paper."""
    return [
        _backfill(table),
        *_no_barriers(table),
        *_dominant(table),
        _bound(table),
        _shared(table),
        _any_sensitivity(table),
    ]


def _over_nodes(table: Table, metric: str, over: str, under: str) -> str:
    parts = [
        f"{relative(table, f'io-nodes-{r}', metric, over, under).value:.2f}" for r in (1, 3, 5)
    ]
    return " / ".join(parts)


def _backfill(table: Table) -> Claim:
    scenario = "io-nodes-1"
    makespan = relative(table, scenario, MAKESPAN, BACKFILL, S_1)
    stretch = relative(table, scenario, PACK_STRETCH, BACKFILL, S_1)
    alpha = load_of(table, scenario)
    packs, overrun = (ratios(table, scenario, of, BACKFILL, S_1) for of in ("packs", "overrun"))
    loaded, light = alpha > 2, alpha <= 2
    return claim(
        "ours-backfilling-small-jobs",
        f"makespan {makespan.show()} of pack-partition's with one I/O node "
        f"({_over_nodes(table, MAKESPAN, BACKFILL, S_1)} with 1 / 3 / 5), stretch {stretch.show()}",
        makespan.high < 1,
        packs=100 * (packs[loaded] == 1).mean(),
        packs_2=geometric(packs[light]).value,
        overrun=geometric(overrun[light]).value,
    )


def _no_barriers(table: Table) -> list[Claim]:
    makespan = relative(table, "io-nodes-1", MAKESPAN, NO_BARRIERS)
    stretch = relative(table, "io-nodes-1", STRETCH, NO_BARRIERS)
    own = relative(table, "io-nodes-1", STRETCH, NO_BARRIERS, S_1)
    return [
        claim(
            "ours-packs-s-1",
            f"makespan {makespan.show()} of first-fit's with one I/O node; with 1 / 3 / 5: "
            f"{_over_nodes(table, MAKESPAN, NO_BARRIERS, FIRST_FIT)}",
            makespan.high < 1,
        ),
        claim(
            "ours-but-give",
            f"largest stretch {stretch.show('.2f')} of first-fit's, {own.show('.1f')} of "
            "pack-partition's",
            own.low > 1,
        ),
    ]


def _dominant(table: Table) -> list[Claim]:
    makespan = {r: relative(table, f"io-nodes-{r}", MAKESPAN, DOMINANT) for r in IO_NODES}
    against = {r: relative(table, f"io-nodes-{r}", MAKESPAN, DOMINANT, S_1) for r in IO_NODES}
    stretch = {r: relative(table, f"io-nodes-{r}", STRETCH, DOMINANT) for r in IO_NODES}
    own = {r: relative(table, f"io-nodes-{r}", STRETCH, DOMINANT, S_1) for r in IO_NODES}
    return [
        claim(
            "ours-dominant-share-s",
            "; ".join(
                f"{r}: makespan {makespan[r].show('.2f')}, largest stretch {stretch[r].show('.2f')}"
                for r in (1, 3, 5)
            ),
            all(makespan[r].high < 1 and stretch[r].high < 1 for r in IO_NODES),
        ),
        claim(
            "ours-dominant-share-has",
            "; ".join(
                f"{r}: makespan {against[r].show('.2f')}, largest stretch {own[r].show('.2f')}"
                for r in (1, 3, 5)
            ),
            all(against[r].high < 1 and own[r].value <= 1.1 for r in IO_NODES),
        ),
    ]


def _bound(table: Table) -> Claim:
    def over(r: int, policy: str) -> float:
        scenario = f"io-nodes-{r}"
        ratios = column(table, scenario, policy, MAKESPAN) / column(
            table, scenario, policy, "bound"
        )
        return geometric(ratios).value

    contenders = (FIRST_FIT, S_1, NO_BARRIERS, DOMINANT)
    best = max(over(r, DOMINANT) for r in IO_NODES)
    return claim(
        "ours-dominant-share-within",
        "; ".join(
            f"{policy} " + " / ".join(f"{over(r, policy):.2f}" for r in (1, 3, 5))
            for policy in contenders
        )
        + " of the bound with 1 / 3 / 5 I/O nodes",
        best <= 1.15,
    )


def _shared(table: Table) -> Claim:
    def over(metric: str, order: str) -> Estimate:
        return relative(table, "orders", metric, of_order(S_1, order), of_order(S_1, FIFO))

    makespan = {order: over(MAKESPAN, order) for order in SHARED}
    stretch = {order: over(STRETCH, order) for order in SHARED}
    return claim(
        "ours-sharing-bandwidth-interrupting",
        "; ".join(
            f"{o}: largest stretch {stretch[o].show('.2f')}, makespan {makespan[o].show('.2f')} of "
            "FIFO's"
            for o in SHARED
        ),
        all(estimate.high < 1 for estimate in stretch.values()),
    )


def _any_sensitivity(table: Table) -> Claim:
    def at(r: int, s: float, metric: str) -> float:
        over, under = (table.values(f"sensitivity-{r}", s, p, metric) for p in (S_1, FIRST_FIT))
        return geometric(over / under).value

    one = {s: (at(1, s, MAKESPAN), at(1, s, STRETCH)) for s in SENSITIVITIES}
    three = {s: at(3, s, MAKESPAN) for s in SENSITIVITIES}
    best = min(three, key=lambda s: three[s])
    own = np.mean(
        table.values("sensitivity-1", 5.0, S_1, MAKESPAN)
        == table.values("sensitivity-1", 5.0, FIRST_FIT, MAKESPAN)
    )
    binding = [s for s in SENSITIVITIES if s <= BINDING]
    rising = np.diff([one[s][1] for s in binding])
    falling = np.diff([one[s][0] for s in binding])
    return claim(
        "ours-one-io-node",
        "makespan and largest stretch over first-fit's: "
        + ", ".join(f"S = {s:g} {m:.2f} {x:.2f}" for s, (m, x) in one.items())
        + f"; with 3 I/O nodes the makespan is shortest at S = {best:g} ({three[best]:.2f})",
        (rising >= -0.01).all() and (falling <= 0.01).all(),
        binding=BINDING,
        own=100 * own,
    )
