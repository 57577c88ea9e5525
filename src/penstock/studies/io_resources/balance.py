"""Claims of Figures 6 and 7: how evenly the I/O nodes are used."""

from collections.abc import Sequence

from penstock.report.findings import Claim
from penstock.studies.io_resources.scenarios import CLAIRVOYANT, NON_CLAIRVOYANT, RANDOM, pair
from penstock.studies.io_resources.terms import BEST, N_SYS, NODES, SPREAD, change, mean, percent
from penstock.studies.table import Estimate, Table

HALF = 0.5
FIGURE_6 = (BEST, N_SYS, "random")
FIGURE_7 = (0.2, 0.5, 0.8)


def claims(table: Table) -> list[Claim]:
    """Return the claims on I/O-spread."""
    cases = [(name, HALF) for name in FIGURE_6]
    loads = [(BEST, x) for x in FIGURE_7]
    return [
        _lower(
            table,
            "Fig. 6: greedy-clairvoyant balances I/O better than greedy-non-clairvoyant",
            cases,
            (CLAIRVOYANT, NON_CLAIRVOYANT),
        ),
        _lower(
            table,
            "Fig. 6: greedy-non-clairvoyant still balances better than random placement",
            cases,
            (NON_CLAIRVOYANT, RANDOM),
        ),
        _lower(
            table,
            "Fig. 7: with best-bandwidth, greedy-clairvoyant's spread is lower at other loads too",
            loads,
            (CLAIRVOYANT, NON_CLAIRVOYANT),
        ),
        _lower(
            table,
            "Fig. 7: with best-bandwidth, greedy-non-clairvoyant is below random there too",
            loads,
            (NON_CLAIRVOYANT, RANDOM),
        ),
    ]


def _lower(
    table: Table, claim: str, cases: Sequence[tuple[str, float]], placers: tuple[str, str]
) -> Claim:
    better, worse = placers
    found: dict[tuple[str, float], Estimate] = {
        (name, x): change(table, NODES, SPREAD, pair(name, better), pair(name, worse), loads=[x])
        for name, x in cases
    }
    return Claim(
        claim=claim,
        by="io-resources",
        paper="lower I/O-spread",
        ours="; ".join(
            f"{name} at load {x:g}: {mean(table, NODES, x, pair(name, better), SPREAD):.2f} "
            f"against {mean(table, NODES, x, pair(name, worse), SPREAD):.2f} ({percent(e, 0)})"
            for (name, x), e in found.items()
        ),
        holds=all(estimate.high < 0 for estimate in found.values()),
        why="Rule: significantly lower in each of these cases. The spread is that of the time "
        "each I/O node is busy in the simulation, not that of planned loads.",
    )
