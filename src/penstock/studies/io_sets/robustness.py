"""Claims of paper io-sets, Sections VI-B1 (noise) and VI-B2, and on what set-10 must know."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise

import numpy as np

from penstock.campaign.journal import Row
from penstock.report.findings import Claim
from penstock.studies.io_sets.gains import (
    EXCLUSIVE,
    FAIR_SHARE,
    METRICS,
    NAMES,
    PARTS,
    SET_10,
    SLOWDOWN,
    STRETCH,
    UTILIZATION,
    claim,
    gain,
    gains,
    spread,
    without_a_part,
)
from penstock.studies.table import Estimate, Table, each
from penstock.studies.verdicts import FINE, at_limits, contains

STEADY = 0.0025
"""The change of Utilization below which the figures say from which noise on nothing moves."""
STRETCHES = {
    "max stretch": ("figure-9", STRETCH),
    "mean stretch": ("figure-9", "mean_stretch"),
    "max stretch of periodic jobs (b = 0)": ("figure-9-periodic", STRETCH),
    "mean stretch of periodic jobs (b = 0)": ("figure-9-periodic", "mean_stretch"),
}
"""What the "relative stretch" of Figure 9 may be of: the paper defines Max Stretch, calls the jobs
periodic and plots Utilization."""
SPREAD = "figure-9"
PAPER = ("figure-6", "figure-6-omega-0.2", "figure-6-n-15", "figure-8", "figure-9", "figure-10")


def claims(table: Table) -> Iterator[Claim]:
    """Return the claims on robustness."""
    parts = (_noise, _spread, _fourth_profile, _never_worse, _knowledge)
    return chain.from_iterable(part(table) for part in parts)


def unmoved(by: float) -> dict[str, bool]:
    """Judge "no impact" on Utilization, or "stable", by how far it moved."""
    return at_limits(lambda limit: by <= limit, FINE)


def _change(table: Table, scenario: str, policy: str, x: float, base: float) -> float:
    values = [table.values(scenario, at, policy, UTILIZATION).mean() for at in (x, base)]
    return float(values[0] / values[1] - 1)


def _noise(table: Table) -> Iterator[Claim]:
    scenario, base = "figure-8", 0.1
    moved = {
        (policy, x): _change(table, scenario, policy, x, base)
        for policy in table.policies(scenario)
        for x in table.points(scenario)
    }
    worst = max(moved, key=lambda point: abs(moved[point]))
    beyond = {x for (_, x), change in moved.items() if abs(change) >= STEADY}
    still = min(x for x in table.points(scenario) if not beyond or x > max(beyond))
    periodic, usual = (gain(table, scenario, UTILIZATION, [x]) for x in (0, base))
    yield claim.over(
        "fig-8-noise-phases-has",
        f"largest change {moved[worst]:+.2%} ({worst[0]} at b = {worst[1]:g}); less than "
        f"{STEADY:.2%} for every policy from b = {still:g} on",
        unmoved(abs(moved[worst])),
        most=f"{abs(moved[worst]):.1%}",
    )
    yield claim.over(
        "vi-b1-strictly-periodic-jobs",
        f"set-10's gain in Utilization over fair-share: {periodic:+.2%} at b = 0, "
        f"{usual:+.2%} at b = 0.1",
        unmoved(abs(_change(table, scenario, SET_10, 0, base))),
        steps=[table.values(scenario, x, SET_10, "in_step").mean() for x in (0, 0.02)],
    )


def _spread(table: Table) -> Iterator[Claim]:
    scenario, points = "figure-9", table.points("figure-9")
    regular, spread_out = (
        {
            reading: table.ratio(name, metric, SET_10, FAIR_SHARE, [x])
            for reading, (name, metric) in STRETCHES.items()
        }
        for x in (0.05, 1.0)
    )
    moved = {
        policy: max((_change(table, scenario, policy, x, 0.05) for x in points), key=abs)
        for policy in (FAIR_SHARE, SET_10)
    }

    def sets(row: Row) -> int:
        return len(str(row["jobs_by_set"]).split())

    rows = table.rows(scenario, 1.0, SET_10)
    counts = Counter(map(sets, rows))
    for name, ratios in (
        ("fig-9-set10-max-stretch", regular),
        ("fig-9-remains-098-sdmean", spread_out),
    ):
        readings = {reading: contains(e, 0.98) for reading, e in ratios.items()}
        yield claim.over(
            name,
            each(ratios, "{} {:.3f}", "; "),
            readings,
            who_is_worst=_explain_worst(table, scenario),
            in_step=table.values("figure-9-periodic", 0.05, SET_10, "in_step").mean(),
        )
    yield claim.over(
        "fig-9-set10-keeps-stable",
        f"{moved[SET_10]:+.2%} at most, from sd/mean = 0.05 to 1; gain over "
        f"fair-share {spread(gains(table, scenario, UTILIZATION), 'sd/mean')}",
        unmoved(abs(moved[SET_10])),
        fair=f"{moved[FAIR_SHARE]:+.2%}",
    )
    yield claim.over(
        "fig-9-spread-w-iter-does",
        f"{moved[FAIR_SHARE]:+.2%} Utilization at most",
        unmoved(abs(moved[FAIR_SHARE])),
    )
    yield claim(
        "vi-b2-sdmean-1-set10",
        ", ".join(f"{n} sets in {counts[n] / len(rows):.0%}" for n in sorted(counts))
        + " of the workloads",
        counts[5] > 0,
        readings={
            "in some workload": counts[5] > 0,
            "in more workloads than any other number": counts[5] == max(counts.values()),
            "in every workload": counts[5] == len(rows),
        },
    )


def _explain_worst(table: Table, scenario: str) -> str:
    def worst(x: float) -> tuple[float, float]:
        own, peers = (
            table.values(scenario, x, SET_10, key) for key in ("worst_w_iter", "worst_set_w_iter")
        )
        return float(np.median(own)), float(np.median(own / peers))

    (_, alike), (own, apart) = worst(0.05), worst(1.0)
    return (
        "A set spans a decade once w_iter spreads, and first come, first served then makes its "
        "fast members wait for its slow ones, at the smallest weight: the job with the maximal "
        f"stretch has a median w_iter of {own:.0f} s, {apart:.2f} times the mean of its set "
        f"({alike:.2f} times at sd/mean = 0.05). Utilization hardly suffers; the maximum does."
    )


def _fourth_profile(table: Table) -> Iterator[Claim]:
    lost = {
        policy: gains(table, "figure-10", UTILIZATION, ours="clairvoyant-sets", other=policy)
        for policy in (SET_10, FAIR_SHARE, EXCLUSIVE)
    }
    span = {
        policy: max(e.value for e in by_point.values()) - min(e.value for e in by_point.values())
        for policy, by_point in lost.items()
    }
    worst = max(lost[SET_10], key=lambda mu: abs(lost[SET_10][mu].value))
    behind = {policy: spread(by_point, "mu", "+.2%") for policy, by_point in lost.items()}
    yield claim.over(
        "fig-10-set10-sets-good",
        f"Utilization behind by {behind[SET_10]}",
        unmoved(abs(lost[SET_10][worst].value)),
        worst=worst,
        border=10 ** (np.floor(np.log10(worst)) + 0.5),
    )
    yield claim(
        "fig-10-fair-share-exclusive",
        "; ".join(f"{policy} {text}" for policy, text in behind.items()) + " behind",
        span[SET_10] == min(span.values()),
    )


def _never_worse(table: Table) -> Iterator[Claim]:
    for metric in (UTILIZATION, STRETCH):
        points = {
            (scenario, x): estimate
            for scenario in PAPER
            for x, estimate in gains(table, scenario, metric).items()
        }
        worse = [point for point, estimate in points.items() if estimate.high < 0]
        least = min(points, key=lambda point: points[point].value)
        places = ", ".join(f"{name} at {x:g}" for name, x in worse)
        yield claim(
            "viii-set10-equivalent-fair",
            f"worse at {len(worse)} of {len(points)} points; at worst "
            f"{points[least]:+.1%} ({least[0]} at {least[1]:g})",
            not worse,
            metric=NAMES[metric],
            name_2=f" Worse: {places}." if worse else "",
            worse=_why_worse(table, metric, worse),
        )


def _why_worse(table: Table, metric: str, places: list[tuple[str, float]]) -> str:
    """Return what the gain becomes without a part of set-10, or with another spread of w_iter."""
    reasons = [
        f" {name} at {x:g}: {without_a_part(table, name, metric, x)}."
        for name, x in places
        if set(PARTS) <= set(table.policies(name))
    ]
    if any(name == SPREAD for name, _ in places):
        by_spread = each(gains(table, SPREAD, metric), "{:g}: {:+.1%}")
        reasons.append(f" {SPREAD}, the same draws by the spread inside sets: {by_spread}.")
    return "".join(reasons)


def _knowledge(table: Table) -> Iterator[Claim]:
    def without_loss(by_point: dict[float, Estimate]) -> float:
        """Return the largest error up to which no gain may be a loss."""
        return max(
            limit
            for limit in by_point
            if limit == 0 or all(e.low > 0 for x, e in by_point.items() if x <= limit)
        )

    wrong = {metric: gains(table, "wrong-w-iter", metric) for metric in METRICS}
    utilization, stretch, slowdown = (wrong[metric][0.2] for metric in METRICS)
    yield claim(
        "wrong-w-iter-set10-still-gains",
        f"Utilization {utilization:+.1%}, IO-slowdown {slowdown:+.0%}, Max Stretch {stretch:+.1%}",
        utilization.low > 0 and slowdown.low > 0,
        utilization=without_loss(wrong[UTILIZATION]),
        slowdown=without_loss(wrong[SLOWDOWN]),
        stretch=without_loss(wrong[STRETCH]),
    )
    share = {
        metric: gain(table, "learned-w-iter", metric, ours="set-10 learned").value
        / gain(table, "learned-w-iter", metric).value
        for metric in (UTILIZATION, SLOWDOWN)
    }
    yield claim(
        "learned-w-iter-live-estimator-keeps",
        f"{share[UTILIZATION]:.0%} of the gain in Utilization, "
        f"{share[SLOWDOWN]:.0%} of that in IO-slowdown",
        min(share.values()) > 0.9,
    )
    loads = {x: estimate.value for x, estimate in gains(table, "load", UTILIZATION).items()}
    yield claim(
        "load-set10-gain-grows",
        ", ".join(f"{value:+.2%} at {x:g}" for x, value in loads.items()),
        all(a < b for a, b in pairwise(loads.values())),
    )
