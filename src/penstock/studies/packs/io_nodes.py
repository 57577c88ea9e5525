"""Claims of paper packs, Section 6.2.4: several I/O nodes, and what the open choices change."""

import numpy as np

from penstock.report.findings import Claim
from penstock.studies.claims import load as claims_of
from penstock.studies.packs.mapping import OVERHEAD
from penstock.studies.packs.ratios import (
    MAKESPAN,
    PACK_STRETCH,
    column,
    geometric,
    mean,
    relative,
)
from penstock.studies.packs.scenarios import (
    BALANCED,
    FIRST_FIT,
    IO_NODES,
    S_1,
    VARIANTS,
)
from penstock.studies.table import Estimate, Table

claim = claims_of("packs")

PAPER = {1: 1.09, 3: 0.71, 5: 0.53}
"""Geometric means of the makespan over first-fit's, by I/O nodes."""
SAME_AS_10 = "that of Figure 10, which shows the same runs: 5 to 15% above first-fit's."
TENTH = "within a tenth of the paper's."


def claims(table: Table) -> list[Claim]:
    """Return the claims on several I/O nodes."""
    return [*_means(table), *_reason(table), _stretch(table), _choices(table)]


def _means(table: Table) -> list[Claim]:
    ours = {r: relative(table, f"io-nodes-{r}", MAKESPAN, S_1) for r in IO_NODES}
    by_choice = _by_choice(table)
    one = []
    for i, (r, paper) in enumerate(PAPER.items()):
        low, high = (f(by_choice, key=lambda name: by_choice[name][i]) for f in (min, max))
        one.append(
            claim(
                "fig-15-s-1-io",
                ours[r].show(),
                _agrees(ours[r], paper, r),
                r=r,
                r_2="s" if r > 1 else "",
                paper=paper,
                rule=SAME_AS_10 if r == 1 else TENTH,
                contains=_contains(ours[r], paper),
                by_choice=by_choice[low][i],
                low=low,
                by_choice_2=by_choice[high][i],
                high=high,
                r_3=" See the claim on Figure 10." if r == 1 else "",
            )
        )
    falls = [ours[r].value for r in IO_NODES]
    return [
        *one,
        claim(
            "fig-15-relative-makespan-falls",
            ", ".join(f"{r}: {ours[r].value:.2f}" for r in IO_NODES),
            falls == sorted(falls, reverse=True),
        ),
    ]


def _agrees(ours: Estimate, paper: float, io_nodes: int) -> bool:
    if io_nodes == 1:
        return OVERHEAD[0] <= ours.value - 1 <= OVERHEAD[1]
    return abs(ours.value / paper - 1) <= 0.1


def _contains(ours: Estimate, paper: float) -> str:
    return "contains" if ours.low <= paper <= ours.high else "does not contain"


def _reason(table: Table) -> list[Claim]:
    """Ask which of the paper's two reasons it is: few packs, or wrong estimates of their length."""
    scenario = "io-nodes-5"
    gap = -np.log(relative(table, scenario, MAKESPAN, S_1).value)
    balanced = relative(table, scenario, MAKESPAN, BALANCED)
    recovered = -np.log(balanced.value) / gap
    packs = {p: column(table, scenario, p, "packs") for p in (FIRST_FIT, S_1)}
    balance = {p: mean(column(table, scenario, p, "balance")) for p in (FIRST_FIT, S_1, BALANCED)}
    few = {p: 100 * float((packs[p] <= 5).mean()) for p in packs}
    return [
        claim(
            "6-2-4-s-1-balances",
            f"with 5 I/O nodes first-fit has {packs[FIRST_FIT].mean():.0f} packs on average "
            f"and at most 5 on {few[FIRST_FIT]:.0f}% of the workloads, S = 1 has "
            f"{packs[S_1].mean():.0f} and {few[S_1]:.0f}%; the I/O nodes' mean end over the last "
            f"is {balance[FIRST_FIT].show('.2f')} and {balance[S_1].show('.2f')}",
            balance[S_1].low > balance[FIRST_FIT].high,
        ),
        claim(
            "6-2-4-because-estimates",
            f"first-fit spread by the I/O time of its packs: {balanced.show()} of first-fit's "
            f"makespan, {100 * recovered:.0f}% of what S = 1 gains",
            recovered >= 0.25,
        ),
    ]


def _stretch(table: Table) -> Claim:
    largest = max(
        np.abs(
            column(table, f"io-nodes-{r}", policy, PACK_STRETCH)
            / column(table, "io-nodes-1", policy, PACK_STRETCH)
            - 1
        ).max()
        for r in IO_NODES
        for policy in (FIRST_FIT, S_1)
    )
    return claim(
        "6-2-4-stretch-does-depend", f"largest relative difference {largest:.1g}", largest < 1e-6
    )


def _by_choice(table: Table) -> dict[str, list[float]]:
    """Return the means of Figure 15 under each open choice of the generator."""
    means = {}
    for k, name in enumerate(VARIANTS):
        over = [
            [table.values(f"choices-{r}", k, p, MAKESPAN) for p in (S_1, FIRST_FIT)] for r in PAPER
        ]
        means[name] = [geometric(one / other).value for one, other in over]
    return means


def _choices(table: Table) -> Claim:
    means = _by_choice(table)
    distance = {
        name: max(abs(v / p - 1) for v, p in zip(values, PAPER.values(), strict=True))
        for name, values in means.items()
    }
    near = sorted(distance, key=lambda name: distance[name])
    lower, higher = (
        [f(values[i] for values in means.values()) for i in range(len(PAPER))] for f in (min, max)
    )
    outside = [
        f"{paper} with {r} ({low:.2f} to {high:.2f})"
        for low, high, (r, paper) in zip(lower, higher, PAPER.items(), strict=True)
        if not low <= paper <= high
    ]
    return claim(
        "ours-what-generator-open",
        "; ".join(
            f"{name}: {' / '.join(f'{v:.2f}' for v in values)}" for name, values in means.items()
        ),
        not outside,
        value=" / ".join(f"{value}" for value in PAPER.values()),
        outside=f" Outside: {', '.join(outside)}." if outside else "",
        nearest=near[0],
        least=100 * distance[near[0]],
        farthest=near[-1],
        most=100 * distance[near[-1]],
        s_1=len(table.rows("choices-1", 0, S_1)),
    )
