"""The claims of paper forwarding, Section 5.4, on the medians over sets."""

import math
from collections.abc import Mapping, Sequence

from penstock.report.findings import Claim
from penstock.studies.claims import load as claims_of
from penstock.studies.forwarding_policies.sets import (
    BANDWIDTH,
    MACHINE,
    MOST,
    NEED,
    OPTIMAL,
    OVER,
    READINGS,
    RIVALS,
    SETS,
    SITE_NODES,
    SIZE,
    STATIC,
    Floats,
    measured,
)
from penstock.studies.table import Estimate, Table, bootstrap

claim = claims_of("forwarding-policies")

LARGEST = 32
"""Compute nodes of the largest patterns."""
POINTS = 0.02
TWO_POINTS = "Rule: the median within two points of the paper's."
TENTH = (
    "Rule: the paper's figure is inside the bootstrap interval over draws of our mean, or within a "
    "tenth of it"
)
BEFORE = 48
"""I/O nodes before those that MCKP needs, counted in eights."""


def claims(table: Table) -> list[Claim]:
    """Return the claims on random sets."""
    return [_machine(table), *_forwarding(table), *_optimum(table), *_static(table)]


def _machine(table: Table) -> Claim:
    median, least, most = (table.values(MACHINE, 0, "nodes", q) for q in ("median", "min", "max"))
    largest = int((measured().nodes == LARGEST).sum())
    chance = math.comb(largest, SIZE) / math.comb(len(measured().nodes), SIZE)
    return claim(
        "5-4-16-applications-set",
        f"{median.mean():.0f}, {least.min():.0f} to {most.max():.0f}",
        abs(median.mean() / 256 - 1) < 0.05,
        size=SIZE,
        size_2=SIZE * 8,
        largest=LARGEST,
        chance=chance,
    )


def _forwarding(table: Table) -> list[Claim]:
    one, oracle = (
        {q: table.values(OVER, OPTIMAL, pair, q) for q in ("median", "min", "max")}
        for pair in ("one over zero", "oracle over zero")
    )
    return [
        claim(
            "5-4-one-io-node",
            _percent(-one["median"], 2),
            abs(-one["median"].mean() - 0.8211) <= POINTS,
        ),
        claim(
            "5-4-best-count-each",
            _percent(oracle["median"], 2),
            abs(oracle["median"].mean() - 0.2563) <= POINTS,
        ),
        claim(
            "5-4-oracle-gain-over",
            f"{_percent(oracle['min'], 2)} to {_percent(oracle['max'], 2)}",
            _near(oracle["min"], 0.0083) and _near(oracle["max"], 1.2168),
            sets=SETS,
            intervals=_intervals({"Least": 100 * oracle["min"], "most": 100 * oracle["max"]}, "%"),
        ),
    ]


def _optimum(table: Table) -> list[Claim]:
    need = {q: table.values(NEED, 0, "mckp", q) for q in ("median", "q05", "q95", "max")}
    medians = {
        policy: table.grid(BANDWIDTH, policy, "median")
        for policy in ("mckp", "oracle", *RIVALS, "zero")
    }
    short = 1 - (medians["mckp"] / medians["oracle"]).mean(axis=0)
    ahead = {p: (medians["mckp"] / medians[p] - 1)[:, 1:].min() for p in RIVALS}
    best = {p: medians[p].mean(axis=0)[SIZE:].max() / medians["zero"].mean() for p in RIVALS}
    return [
        claim(
            "fig-5-5-mckp-reaches-oracle",
            f"MCKP's median is {100 * short[OPTIMAL]:.2f}% below ORACLE's at {OPTIMAL} I/O "
            f"nodes, {100 * short[BEFORE]:.2f}% at {BEFORE}; half of the sets reach ORACLE's with "
            f"{need['median'].mean():.0f} (90% need {need['q05'].mean():.0f} to "
            f"{need['q95'].mean():.0f}, the last {need['max'].max():.0f})",
            BEFORE < need["median"].mean() <= OPTIMAL,
            optimal=OPTIMAL,
        ),
        claim(
            "fig-5-5-dividing-io-nodes",
            "MCKP's median ahead of "
            + ", ".join(f"{p.upper()}'s by at least {100 * v:.1f}%" for p, v in ahead.items()),
            all(value > 0 for value in ahead.values()),
            most=MOST,
            size=SIZE,
            best=", ".join((f"{p.upper()} has {100 * v:.0f}%" for p, v in best.items())),
        ),
    ]


def _static(table: Table) -> list[Claim]:
    pair = "mckp over static"
    ours = {q: table.values(OVER, OPTIMAL, pair, q) for q in ("median", "min", "max")}
    readings = {r: 100 * table.values(STATIC, OPTIMAL, r, "median").mean() for r in READINGS}
    largest = 1 + table.grid(OVER, pair, "max", range(1, MOST + 1)).max(axis=1)
    most = [100 * table.values(STATIC, OPTIMAL, r, "max").mean() for r in READINGS]
    reach = min(most), max(most)
    listed = "; ".join(f"{reading} {median:.0f}%" for reading, median in readings.items())
    return [
        claim(
            "5-4-io-nodes-mckp",
            _percent(ours["median"], 1),
            abs(ours["median"].mean() - 2.1138) <= POINTS,
            optimal=OPTIMAL,
            site_nodes=SITE_NODES,
            listed=listed,
        ),
        claim(
            "5-4-io-nodes-mckp-2",
            f"{_percent(ours['min'], 1)} to {_percent(ours['max'], 0)}",
            _near(ours["min"], 0.0408) and _near(ours["max"], 7.3922),
            optimal=OPTIMAL,
            sets=SETS,
            intervals=_intervals({"Least": 100 * ours["min"], "most": 100 * ours["max"]}, "%"),
            reach=reach[0],
            reach_2=reach[1],
        ),
        claim(
            "5-7-mckp-could-improve",
            f"{largest.mean():.1f}{_range(largest, 1)}",
            _near(largest, 23),
            sets=SETS,
            intervals=_intervals({"Ours": largest}),
        ),
    ]


def _over_draws(values: Floats) -> Estimate:
    return bootstrap(lambda mean: mean, values)


def _near(ours: Floats, paper: float) -> bool:
    """Return whether the paper's figure agrees with ours, which has an entry a draw."""
    mean = _over_draws(ours)
    return mean.low <= paper <= mean.high or abs(paper / mean.value - 1) <= 0.1


def _intervals(ours: Mapping[str, Floats], unit: str = "") -> str:
    """Say the intervals of extremes, and how far single draws are apart."""
    if any(len(values) == 1 for values in ours.values()):
        return "One draw has no interval."
    return (
        "; ".join(
            f"{name} {_over_draws(values).show('.2f', unit=unit)}, in single draws "
            f"{values.min():.2f} to {values.max():.2f}"
            for name, values in ours.items()
        )
        + f" ({len(next(iter(ours.values())))} draws)."
    )


def _percent(values: Floats, digits: int) -> str:
    return f"{100 * values.mean():.{digits}f}%{_range(100 * values, digits)}"


def _range(values: Floats | Sequence[float], digits: int) -> str:
    """Return the ends over the draws, where there are several."""
    if len(values) == 1:
        return ""
    return f" [{min(values):.{digits}f}, {max(values):.{digits}f}]"
