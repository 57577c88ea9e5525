"""Whether set-10 gains, and by which part of it: the claims of paper io-sets, Sections VI-A and
VI-B1."""

from collections.abc import Iterator, Mapping

import numpy as np

from penstock.campaign.journal import CellId
from penstock.report.findings import Claim
from penstock.studies.io_sets.gains import (
    EXCLUSIVE,
    FAIR_SHARE,
    METRICS,
    NAMES,
    SET_10,
    STRETCH,
    UTILIZATION,
    claim,
    gain,
    gains,
    spread,
    without_a_part,
)
from penstock.studies.table import Estimate, Table, above
from penstock.studies.verdicts import at_limits

BASE = "figure-6"
EVEN = 20
"""The n_H (of 40) with as many high-frequency as low-frequency jobs."""


def claims(table: Table, seconds: Mapping[CellId, float]) -> list[Claim]:
    """Return the claims on effectiveness."""
    return [
        *_validation(table, seconds),
        *_close_to_optimal(table),
        *_gains(table),
        *_parts(table),
        *_variants(table),
    ]


def _validation(table: Table, seconds: Mapping[CellId, float]) -> Iterator[Claim]:
    scenario = "figure-4"
    stretch = table.mean(scenario, 16, SET_10, STRETCH).value
    duration = sum(value for (name, _, _), value in seconds.items() if name == scenario)
    by_point = gains(table, scenario, UTILIZATION)
    yield claim("fig-4-n-h-16-alike", f"{stretch:.4f}", abs(stretch - 1) < 1e-3)
    yield claim(
        "fig-4-simulating-takes-less",
        f"{duration:.2f} s (17 mixes, 3 policies, one core)",
        duration < 5,
    )
    yield claim(
        "fig-4-set10-raises-utilization",
        spread(by_point, "n_H", "+.0%"),
        min(e.value for e in by_point.values()) > 0,
    )


def _close_to_optimal(table: Table) -> Iterator[Claim]:
    bound = float(table.grid(BASE, SET_10, "utilization_bound").mean())
    parts, stretches = (
        {policy: float(table.grid(BASE, policy, m).mean()) for policy in (SET_10, FAIR_SHARE)}
        for m in (UTILIZATION, STRETCH)
    )
    yield claim(
        "vi-b1-applications-spend-average",
        f"{100 * (1 - bound):.2f}%",
        round(100 * (1 - bound), 2) == 1.33,
    )
    readings = at_limits(
        lambda limit: (
            min(parts.values()) >= (1 - limit) * bound and max(stretches.values()) <= 1 + limit
        )
    )
    yield claim.over(
        "vi-b1-utilization-max-stretch",
        ", ".join(
            f"{policy} {part / bound:.1%} of the bound, stretch {stretches[policy]:.3f}"
            for policy, part in parts.items()
        ),
        readings,
    )


def _gains(table: Table) -> Iterator[Claim]:
    by_metric = {metric: gains(table, BASE, metric) for metric in METRICS}
    for metric, by_point in by_metric.items():
        whole = gain(table, BASE, metric)
        readings = {"over all n_H": whole.low > 0, "at every n_H": above(by_point)}
        yield claim.over(
            "vi-b1-set10-better-fair",
            f"{whole:+.1%} over all n_H; {spread(by_point, 'n_H')}",
            readings,
            metric=NAMES[metric],
            where_no_gain=_where_no_gain(table, by_point) if metric == STRETCH else "",
        )
    exclusive = {
        metric: gains(table, BASE, metric, ours=FAIR_SHARE, other=EXCLUSIVE) for metric in METRICS
    }
    yield claim(
        "vi-b1-exclusive-fcfs-has",
        "behind fair-share by "
        + ", ".join(
            f"{np.mean([e.value for e in by_point.values()]):.1%} in {NAMES[metric]}"
            for metric, by_point in exclusive.items()
        ),
        all(above(by_point) for by_point in exclusive.values()),
    )


def _where_no_gain(table: Table, by_point: Mapping[float, Estimate]) -> str:
    without = [x for x, estimate in by_point.items() if estimate.low <= 0]
    if not without:
        return ""
    parts = "; ".join(f"at n_H = {x:g} {without_a_part(table, BASE, STRETCH, x)}" for x in without)
    return f" No significant gain in Max Stretch, whole or with one of set-10's two parts: {parts}."


def _parts(table: Table) -> Iterator[Claim]:
    points = table.points(BASE)
    few = [x for x in points if x < EVEN]
    many = [x for x in points if x > EVEN]

    def lost(metric: str, where: list[float] | None) -> tuple[Estimate, Estimate]:
        """Return what is lost to set-10 without sets, and without weights."""
        without_sets = gain(table, BASE, metric, where, other="share-priority")
        return without_sets, gain(table, BASE, metric, where, other="set-fair-share")

    sets, weights = lost(STRETCH, few)
    yield claim(
        "fig-7-exclusive-access-inside",
        f"without sets (share-priority) {sets:+.2%} worse than set-10, without weights "
        f"(set-fair-share) {weights:+.2%}",
        sets.low > 0 and sets.low > weights.high,
        even=EVEN,
    )
    sets, weights = lost(STRETCH, many)
    yield claim(
        "fig-7-weights-matter-max",
        f"without weights (set-fair-share) {weights:+.2%} worse than set-10, without sets "
        f"(share-priority) {sets:+.2%}",
        weights.low > 0,
        even=EVEN,
    )
    sets, weights = lost(UTILIZATION, None)
    yield claim(
        "fig-7-utilization-two-policies",
        f"share-priority {sets:+.2%}, set-fair-share {weights:+.2%} behind set-10",
        sets.high < weights.low,
    )


def _variants(table: Table) -> Iterator[Claim]:
    light, small, usual = (
        [gain(table, scenario, metric) for metric in METRICS]
        for scenario in ("figure-6-omega-0.2", "figure-6-n-15", BASE)
    )
    yield claim(
        "vi-b-omega-02-impact",
        "Utilization {:+.2%}, Max Stretch {:+.2%}, IO-slowdown {:+.1%}".format(*light),
        all(one.high < other.low for one, other in zip(light, usual, strict=True)),
    )
    yield claim(
        "vi-b-set10-gains-over",
        "Utilization {:+.1%}, Max Stretch {:+.1%}, IO-slowdown {:+.0%}".format(*small),
        above(gains(table, "figure-6-n-15", UTILIZATION)),
    )
