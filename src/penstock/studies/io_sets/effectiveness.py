"""What set-10 gains, by which part of it, and against which rivals: the claims of paper io-sets,
Sections VI-A, VI-B1 and VIII, and ours."""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from penstock.campaign.journal import CellId
from penstock.report.findings import Claim
from penstock.sim.generators.io_sets import PLAFRIM_SETS
from penstock.studies.io_sets.gains import (
    EXCLUSIVE,
    FAIR_SHARE,
    METRICS,
    NAMES,
    SET_10,
    SLOWDOWN,
    STRETCH,
    UTILIZATION,
    claim,
    gain,
    gains,
    near,
    spread,
)
from penstock.studies.io_sets.scenarios import NETWORK
from penstock.studies.table import Estimate, Table, above, each

BASE = "figure-6"
FEW_HIGH, MANY_HIGH = 10, 30
"""Up to and from which n_H (of 40) "n_H is low" and "there are more of those"."""
PAPER_GAINS = {UTILIZATION: 0.025, STRETCH: 0.025, SLOWDOWN: 0.5}
REASONS = {
    UTILIZATION: "All policies meet the same workloads, drawn as Section V-B prints, and SimGrid "
    "has the same fair-share means on them as our engine. But the gain depends much on the load "
    f"(figure 'load'): see the claim on omega = {NETWORK}.",
    STRETCH: "It is largest where many low-frequency jobs take turns and vanishes where few "
    "are left. On the load, see the gain in Utilization.",
}
MIX, PLAFRIM = "rivals", "rivals-plafrim"
BALANCED = 20.0
EQUAL_KNOWLEDGE = "equal-knowledge"
OURS = {
    "fair-finish": "ours-fair-finish-equal-knowledge",
    "hedged-finish": "ours-hedged-finish-equal-knowledge",
}
"""Our policies, each with the claim on it at equal knowledge."""
INTERRUPT = frozenset({"greedy-yield", "greedy-com", *OURS})
"""Policies that interrupt phases and must be told jobs' progress or phases' lengths."""
GREEDY = {UTILIZATION: "greedy-com", STRETCH: "greedy-yield", SLOWDOWN: "greedy-com"}
"""Who Benoit et al. (JPDC 2024) lead us to expect in front: least rest, and lowest yield first."""


def claims(table: Table, seconds: Mapping[CellId, float]) -> list[Claim]:
    """Return the claims on effectiveness."""
    return [
        *_validation(table, seconds),
        *_close_to_optimal(table),
        *_gains(table),
        *_parts(table),
        *_variants(table),
    ]


def rival_claims(table: Table) -> list[Claim]:
    """Return the claims on rivals and on PlaFRIM."""
    return [
        *_rivals(table, MIX, BALANCED, "balanced workload"),
        *_rivals(table, PLAFRIM, 0, "PlaFRIM's shares"),
        _fair_finish(table),
        *(_equal_knowledge(table, policy) for policy in OURS),
        *_plafrim(table),
    ]


def _named(estimates: Mapping[str, Estimate]) -> str:
    return each({NAMES[metric]: e for metric, e in estimates.items()}, "{} {:+.1%}")


def _validation(table: Table, seconds: Mapping[CellId, float]) -> Iterator[Claim]:
    scenario = "figure-4"
    stretch = table.mean(scenario, 16, SET_10, STRETCH).value
    duration = sum(value for (name, _, _), value in seconds.items() if name == scenario)
    by_point = gains(table, scenario, UTILIZATION)
    values, ends = [e.value for e in by_point.values()], spread(by_point, "n_H", "+.0%")
    yield claim("fig-4-n-h-16-alike", f"{stretch:.4f}", abs(stretch - 1) < 1e-3)
    yield claim(
        "fig-4-simulating-takes-less",
        f"{duration:.2f} s (17 mixes, 3 policies, one core)",
        duration < 5,
    )
    yield claim("fig-4-set10-raises-utilization", ends, min(values) > 0)
    yield claim(
        "abstract-practical-scenarios-utilization",
        f"{ends} (simulated)",
        min(values) >= 0.1 and max(values) <= 0.3,
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
    yield claim(
        "vi-b1-utilization-max-stretch",
        ", ".join(
            f"{policy} {part / bound:.1%} of the bound, stretch {stretches[policy]:.3f}"
            for policy, part in parts.items()
        ),
        min(parts.values()) / bound > 0.95 and max(stretches.values()) < 1.1,
    )


def _gains(table: Table) -> Iterator[Claim]:
    by_metric = {metric: gains(table, BASE, metric) for metric in METRICS}
    mean = {metric: gain(table, BASE, metric) for metric in METRICS}
    for metric, by_point in by_metric.items():
        yield claim(
            "vi-b1-set10-better-fair",
            spread(by_point, "n_H"),
            above(by_point),
            metric=NAMES[metric],
            where_no_gain=_where_no_gain(table, by_point),
        )
    for metric, reason in REASONS.items():
        yield claim(
            "vi-b1-set10-gain-over",
            f"{mean[metric]:+.1%} over all n_H; {spread(by_metric[metric], 'n_H')}",
            near(mean[metric].value, PAPER_GAINS[metric]),
            metric=NAMES[metric],
            reason=reason,
        )
    yield claim(
        "vi-b1-abstract-set10-io-slowdown",
        f"{mean[SLOWDOWN]:+.0%} over all n_H; {spread(by_metric[SLOWDOWN], 'n_H', '+.0%')}",
        near(mean[SLOWDOWN].value, PAPER_GAINS[SLOWDOWN]),
    )

    # The paper's three gains against ours at the load of SimGrid's default network.
    won = {metric: gain(table, f"figure-6-omega-{NETWORK}", metric) for metric in METRICS}
    balanced = [gain(table, "load", metric, [NETWORK]).value for metric in METRICS]
    yield claim(
        "ours-omega-load-simgrid",
        f"{_named(won)} over all n_H; {', '.join(f'{v:+.1%}' for v in balanced)} for n_H = 20",
        all(near(won[metric].value, PAPER_GAINS[metric]) for metric in METRICS),
        network=NETWORK,
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
    worst = [n for x in without for n in table.values(BASE, x, SET_10, "worst_set")]
    return (
        f" No significant gain at n_H = {', '.join(f'{x:g}' for x in without)}: in "
        f"{np.mean(np.array(worst) == 3):.0%} of these workloads the worst job is one of the few "
        "low-frequency ones left, which have the smallest weight among many high-frequency ones."
    )


def _parts(table: Table) -> Iterator[Claim]:
    points = table.points(BASE)
    few = [x for x in points if x <= FEW_HIGH]
    many = [x for x in points if x >= MANY_HIGH]

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
        few_high=FEW_HIGH,
    )
    sets, weights = lost(STRETCH, many)
    yield claim(
        "fig-7-weights-matter-max",
        f"without weights (set-fair-share) {weights:+.2%} worse than set-10, without sets "
        f"(share-priority) {sets:+.2%}",
        weights.low > 0,
        many_high=MANY_HIGH,
    )
    sets, weights = lost(UTILIZATION, None)
    yield claim(
        "fig-7-utilization-two-policies",
        f"share-priority {sets:+.2%}, set-fair-share {weights:+.2%} behind set-10",
        sets.high < weights.low,
    )


def _variants(table: Table) -> Iterator[Claim]:
    light, small = (
        [gain(table, scenario, metric) for metric in METRICS]
        for scenario in ("figure-6-omega-0.2", "figure-6-n-15")
    )
    yield claim(
        "vi-b-omega-02-impact",
        "Utilization {:+.2%}, Max Stretch {:+.2%}, IO-slowdown {:+.1%}".format(*light),
        light[0].high < gain(table, BASE, UTILIZATION).low / 10,
    )
    yield claim(
        "vi-b-set10-gains-over",
        "Utilization {:+.1%}, Max Stretch {:+.1%}, IO-slowdown {:+.0%}".format(*small),
        above(gains(table, "figure-6-n-15", UTILIZATION)),
    )


def _ranks(table: Table, scenario: str, x: float, metric: str) -> dict[str, float]:
    """Return the mean of each policy, the best first."""
    sign = -1 if metric == UTILIZATION else 1
    means = {
        policy: float(table.values(scenario, x, policy, metric).mean())
        for policy in table.policies(scenario)
    }
    return dict(sorted(means.items(), key=lambda item: sign * item[1]))


def _rivals(table: Table, scenario: str, x: float, where: str) -> Iterator[Claim]:
    ranks = {metric: _ranks(table, scenario, x, metric) for metric in METRICS}
    simple = [policy for policy in ranks[UTILIZATION] if policy not in INTERRUPT]
    margin = gain(table, scenario, UTILIZATION, [x], other=next(p for p in simple if p != SET_10))
    yield claim(
        "rivals-greedy-com-wins",
        "; ".join(f"{NAMES[metric]}: {each(ranks[metric], '{} {:.3f}')}" for metric in METRICS),
        {metric: next(iter(ranks[metric])) for metric in METRICS} == GREEDY,
        where=where,
    )
    yield claim(
        "rivals-set10-has-best",
        f"{', '.join(simple)}; set-10 against the next best {margin:+.2%}",
        margin.low > 0,
        where=where,
    )


def _fair_finish(table: Table) -> Claim:
    places = {f"n_H = {x:g}": (MIX, x) for x in table.points(MIX)}
    places["PlaFRIM's shares"] = (PLAFRIM, 0.0)
    won = {
        metric: {
            place: gain(table, scenario, metric, [x], ours="fair-finish", other=SET_10)
            for place, (scenario, x) in places.items()
        }
        for metric in METRICS
    }
    behind = "; ".join(
        f"{NAMES[metric]} {won[metric][place]:+.1%} at {place}"
        for place in places
        for metric in METRICS
        if won[metric][place].low <= 0
    )
    values = {NAMES[metric]: [e.value for e in by.values()] for metric, by in won.items()}
    return claim(
        "ours-fair-finish-ahead",
        "; ".join(f"{name} {min(v):+.1%} to {max(v):+.1%}" for name, v in values.items()),
        not behind,
        behind=f" Not ahead: {behind}." if behind else "",
    )


def _equal_knowledge(table: Table, policy: str) -> Claim:
    """Judge a policy of ours against SET-10 when both are told the same, right or wrong."""
    errors = table.points(EQUAL_KNOWLEDGE)
    won = {
        metric: {
            x: gain(table, EQUAL_KNOWLEDGE, metric, [x], ours=policy, other=SET_10) for x in errors
        }
        for metric in METRICS
    }
    behind = "; ".join(
        f"{NAMES[metric]} {won[metric][x]:+.1%} at {x:g} decades"
        for metric in METRICS
        for x in errors
        if won[metric][x].low <= 0
    )
    values = (f"{NAMES[m]} {' '.join(f'{won[m][x].value:+.1%}' for x in errors)}" for m in METRICS)
    return claim(
        OURS[policy],
        f"at {', '.join(f'{x:g}' for x in errors)} decades: {'; '.join(values)}",
        not behind,
        behind=f" Not ahead: {behind}." if behind else "",
    )


def _plafrim(table: Table) -> Iterator[Claim]:
    jobs: Counter[int] = Counter()
    for row in table.rows(PLAFRIM, 0, SET_10):
        for part in str(row["jobs_by_set"]).split():
            number, count = part.split(":")
            jobs[int(number)] += int(count)
    total, jobs_in_paper = sum(jobs.values()), sum(PLAFRIM_SETS)
    ours = [100 * jobs[number] / total for number in range(len(PLAFRIM_SETS))]
    paper = [100 * count / jobs_in_paper for count in PLAFRIM_SETS]
    # Three standard errors of the least certain share, which is the one nearest to a half.
    tolerance = 3 * max((p * (100 - p) / total) ** 0.5 for p in paper)
    yield claim(
        "viii-shares-sets-s-0",
        " / ".join(f"{p:.2f}" for p in ours) + f" % ({total} synthetic jobs)",
        all(abs(a - b) < tolerance for a, b in zip(ours, paper, strict=True)),
        paper=" / ".join(f"{p:.2f}" for p in paper),
        tolerance=tolerance,
    )
    most = sum(ours[1:4])
    yield claim("viii-most-io-bound", f"{most:.1f}% (synthetic)", most > 50, paper=sum(paper[1:4]))
    won = {metric: gain(table, PLAFRIM, metric) for metric in METRICS}
    yield claim("viii-io-sets-relevant", _named(won), won[UTILIZATION].low > 0)
