"""Claims of Figures 6 and 7: how evenly the I/O nodes are used."""

from collections.abc import Sequence

from penstock.report.findings import Claim
from penstock.studies.claims import load as claims_of
from penstock.studies.io_resources.scenarios import CLAIRVOYANT, NON_CLAIRVOYANT, RANDOM, pair
from penstock.studies.io_resources.terms import BEST, N_SYS, NODES, SPREAD, change, mean, percent
from penstock.studies.table import Estimate, Table

claim = claims_of("io-resources")

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
            "fig-6-clairvoyant",
            cases,
            (CLAIRVOYANT, NON_CLAIRVOYANT),
        ),
        _lower(
            table,
            "fig-6-non-clairvoyant",
            cases,
            (NON_CLAIRVOYANT, RANDOM),
        ),
        _lower(
            table,
            "fig-7-clairvoyant",
            loads,
            (CLAIRVOYANT, NON_CLAIRVOYANT),
        ),
        _lower(
            table,
            "fig-7-non-clairvoyant",
            loads,
            (NON_CLAIRVOYANT, RANDOM),
        ),
    ]


def _lower(
    table: Table, name: str, cases: Sequence[tuple[str, float]], placers: tuple[str, str]
) -> Claim:
    better, worse = placers
    estimates: dict[tuple[str, float], Estimate] = {
        (name, x): change(table, NODES, SPREAD, pair(name, better), pair(name, worse), loads=[x])
        for name, x in cases
    }
    return claim(
        name,
        "; ".join(
            f"{name} at load {x:g}: {mean(table, NODES, x, pair(name, better), SPREAD):.2f} "
            f"against {mean(table, NODES, x, pair(name, worse), SPREAD):.2f} ({percent(e, 0)})"
            for (name, x), e in estimates.items()
        ),
        all(estimate.high < 0 for estimate in estimates.values()),
    )
