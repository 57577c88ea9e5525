"""Claims of Section 5.4 and 5.7 on random sets of access patterns."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from penstock.report.findings import Claim
from penstock.studies.forwarding_policies.sets import (
    BANDWIDTH,
    DRAWN,
    MACHINE,
    MOST,
    NEED,
    OPTIMAL,
    OVER,
    READINGS,
    REPEATED,
    RIVALS,
    SETS,
    SITE_NODES,
    SIZE,
    STATIC,
    STATIC_BY_SET,
    STATIC_READ,
    Floats,
    measured,
)
from penstock.studies.table import Estimate, Table, bootstrap, each
from penstock.studies.texts import claims_of
from penstock.studies.verdicts import over

claim = claims_of("forwarding-policies", sets=SETS, size=SIZE, optimal=OPTIMAL)

LARGEST = 32
"""Compute nodes of the largest patterns."""
POINTS = (2.0, 1.0, 5.0)
"""How far, in percentage points, a median may be from the printed one; the thesis has no range."""
NEAR = (0.1, 0.05, 0.2)
"""How far, relative to ours, an extreme may be from the printed one."""
SHORT = (0.002, 0.001, 0.005, 0.01)
"""How far MCKP's median may be below ORACLE's where the two curves are said to meet."""
BEFORE = 48
"""I/O nodes before those that MCKP needs, counted in eights."""


def claims(table: Table) -> list[Claim]:
    """Return the claims on random sets."""
    return [*_forwarding(table), *_optimum(table), *_static(table)]


def _forwarding(table: Table) -> Iterator[Claim]:
    median, least, most = (table.values(MACHINE, 0, "nodes", q) for q in ("median", "min", "max"))
    nodes = measured().nodes
    chance = math.comb(int((nodes == LARGEST).sum()), SIZE) / math.comb(len(nodes), SIZE)
    yield claim(
        "5-4-16-applications-set",
        f"{median.mean():.0f}, {least.min():.0f} to {most.max():.0f}",
        abs(median.mean() / 256 - 1) < 0.05,
        size_2=SIZE * int(nodes.min()),
        largest=LARGEST,
        chance=chance,
        repeated=table.values(f"{REPEATED} {MACHINE}", 0, "nodes", "median").mean(),
        middle=np.median(nodes),
        middles=SIZE * np.median(nodes),
        largests=SIZE * nodes.max(),
    )

    one, oracle = (
        {q: table.values(OVER, OPTIMAL, pair, q) for q in ("median", "min", "max")}
        for pair in ("one over zero", "oracle over zero")
    )
    one_repeated, oracle_repeated = _repeated_medians(table)
    yield claim.over(
        "5-4-one-io-node",
        _percent(-one["median"], 2),
        _points(-one["median"], 0.8211),
        repeated=_percent(-one_repeated, 2),
    )
    yield claim.over(
        "5-4-best-count-each",
        _percent(oracle["median"], 2),
        _points(oracle["median"], 0.2563),
        repeated=_percent(oracle_repeated, 2),
    )
    yield claim.over(
        "5-4-oracle-gain-over",
        f"{_percent(oracle['min'], 2)} to {_percent(oracle['max'], 2)}",
        over(
            NEAR,
            "within {:.0%}",
            lambda part: (
                near_to(oracle["min"], 0.0083, part) and near_to(oracle["max"], 1.2168, part)
            ),
        ),
        intervals=_intervals(".2%", Least=oracle["min"], most=oracle["max"]),
    )


def _optimum(table: Table) -> Iterator[Claim]:
    need = {q: table.values(NEED, 0, "mckp", q) for q in ("median", "q05", "q95", "max")}
    medians = {
        policy: table.grid(BANDWIDTH, policy, "median")
        for policy in ("mckp", "oracle", *RIVALS, "zero")
    }
    short = 1 - (medians["mckp"] / medians["oracle"]).mean(axis=0)
    ahead = {p: (medians["mckp"] / medians[p] - 1)[:, 1:].min() for p in RIVALS}
    best = {p: medians[p].mean(axis=0)[SIZE:].max() / medians["zero"].mean() for p in RIVALS}
    yield claim.over(
        "fig-5-5-mckp-reaches-oracle",
        f"MCKP's median is {short[OPTIMAL]:.2%} below ORACLE's at {OPTIMAL} I/O "
        f"nodes, {short[BEFORE]:.2%} at {BEFORE}; half of the sets reach ORACLE's with "
        f"{need['median'].mean():.0f} (90% need {need['q05'].mean():.0f} to "
        f"{need['q95'].mean():.0f}, the last {need['max'].max():.0f})",
        {"half of the sets, counted in eights": BEFORE < need["median"].mean() <= OPTIMAL}
        | {"half of the sets, counted one by one": round(need["median"].mean()) == OPTIMAL}
        | over(
            SHORT,
            "medians within {:.1%}, counted in eights",
            lambda part: next(n for n in range(0, MOST + 1, 8) if short[n] <= part) == OPTIMAL,
        ),
    )
    yield claim(
        "fig-5-5-dividing-io-nodes",
        "MCKP's median ahead of "
        + ", ".join(f"{p.upper()}'s by at least {v:.1%}" for p, v in ahead.items()),
        all(value > 0 for value in ahead.values()),
        most=MOST,
        best=", ".join((f"{p.upper()} has {v:.0%}" for p, v in best.items())),
    )


def _static(table: Table) -> Iterator[Claim]:
    pair = "mckp over static"
    ours = table.values(OVER, OPTIMAL, pair, "median")
    readings = {r: 100 * table.values(STATIC, OPTIMAL, r, "median").mean() for r in READINGS}
    most = [100 * table.values(STATIC, OPTIMAL, r, "max").mean() for r in READINGS]
    yield claim.over(
        "5-4-io-nodes-mckp",
        _percent(ours, 1),
        {
            f"CN {reading}": abs(median - 211.38) <= POINTS[0]
            for reading, median in sorted(readings.items(), key=lambda one: one[0] != STATIC_READ)
        },
        site_nodes=SITE_NODES,
        listed=each(readings, "{} {:.0f}%", "; "),
    )
    ends = {
        words: tuple(table.values(f"{drawn}{OVER}", OPTIMAL, pair, q) for q in ("min", "max"))
        for words, drawn in DRAWN.items()
    }
    low, high = next(iter(ends.values()))
    yield claim.over(
        "5-4-io-nodes-mckp-2",
        "; ".join(f"{w}: {_percent(a, 1)} to {_percent(b, 0)}" for w, (a, b) in ends.items()),
        {
            f"{w}, within {part:.0%}": near_to(low, 0.0408, part) and near_to(high, 7.3922, part)
            for part in NEAR
            for w, (low, high) in ends.items()
        },
        intervals=_intervals(".2%", Least=low, most=high),
        reach=min(most),
        reach_2=max(most),
        **_drawn_otherwise(table),
    )
    largest = {
        words: 1 + table.grid(f"{drawn}{OVER}", pair, "max", range(1, MOST + 1)).max(axis=1)
        for words, drawn in DRAWN.items()
    }
    yield claim.over(
        "5-7-mckp-could-improve",
        "; ".join(f"{words}: {x.mean():.1f}{_range(x, 1)}" for words, x in largest.items()),
        {
            f"{words}, within {part:.0%}": near_to(some, 23, part)
            for part in NEAR
            for words, some in largest.items()
        },
        intervals=_intervals(".2f", Ours=next(iter(largest.values()))),
        repeated=_percent(-_repeated_medians(table)[0], 2),
        once=_percent(-table.values(OVER, OPTIMAL, "one over zero", "median"), 2),
    )


def _repeated_medians(table: Table) -> tuple[Floats, Floats]:
    """Return what ONE and ORACLE gain over ZERO on the median set with repeated patterns."""
    one, oracle = (
        table.values(f"{REPEATED} {OVER}", OPTIMAL, f"{name} over zero", "median")
        for name in ("one", "oracle")
    )
    return one, oracle


def _drawn_otherwise(table: Table) -> dict[str, str]:
    """Say what the gain over STATIC becomes with other sets, another STATIC, and both."""

    def gains(drawn: str, reading: str) -> str:
        low, middle, high = (
            table.values(f"{drawn}{STATIC}", OPTIMAL, reading, q) for q in ("min", "median", "max")
        )
        return f"{_percent(low, 1)} to {_percent(high, 0)}, median {_percent(middle, 1)}"

    once, twice = DRAWN.values()
    one, oracle = _repeated_medians(table)
    return {
        "sets_alone": gains(twice, STATIC_READ),
        "static_alone": gains(once, STATIC_BY_SET),
        "both": gains(twice, STATIC_BY_SET),
        "one": _percent(-one, 2),
        "oracle": _percent(oracle, 2),
    }


def _over_draws(values: Floats) -> Estimate:
    return bootstrap(lambda mean: mean, values)


def _agrees(ours: Floats, paper: float, points: float) -> bool:
    """Return whether the mean over draws is as near to the paper's figure."""
    return bool(abs(ours.mean() - paper) <= points / 100)


def _points(ours: Floats, paper: float) -> dict[str, bool]:
    return over(POINTS, "within {:g} points", lambda points: _agrees(ours, paper, points))


def near_to(ours: Floats, paper: float, part: float = NEAR[0]) -> bool:
    """Return whether the paper's figure agrees with ours, which has an entry a draw."""
    mean = _over_draws(ours)
    return mean.low <= paper <= mean.high or abs(paper / mean.value - 1) <= part


def _intervals(form: str, **extremes: Floats) -> str:
    """Say the intervals of extremes, and how far single draws are apart."""
    draws, scale = len(next(iter(extremes.values()))), 100 if form.endswith("%") else 1
    if draws == 1:
        return "One draw has no interval."
    texts = (
        f"{name} {_over_draws(values):{form}}, in single draws {scale * values.min():.2f} to "
        f"{scale * values.max():.2f}"
        for name, values in extremes.items()
    )
    return f"{'; '.join(texts)} ({draws} draws)."


def _percent(values: Floats, digits: int) -> str:
    return f"{100 * values.mean():.{digits}f}%{_range(100 * values, digits)}"


def _range(values: Floats | Sequence[float], digits: int) -> str:
    """Return the ends over the draws, where there are several."""
    if len(values) == 1:
        return ""
    return f" [{min(values):.{digits}f}, {max(values):.{digits}f}]"
