"""Claims on who wins what when policies of others and of ours join in, and on PlaFRIM's sets."""

from collections import Counter

from penstock.report.findings import Claim
from penstock.sim.generators.io_sets import PLAFRIM_SETS
from penstock.studies.claims import load as claims_of
from penstock.studies.io_sets.gains import (
    METRICS,
    NAMES,
    SET_10,
    SLOWDOWN,
    STRETCH,
    UTILIZATION,
    gain,
    percent,
)
from penstock.studies.table import Estimate, Table

claim = claims_of("io-sets")

MIX, PLAFRIM = "rivals", "rivals-plafrim"
BALANCED = 20.0
INTERRUPT = frozenset({"greedy-yield", "greedy-com", "fair-finish"})
"""Policies that interrupt phases and must be told jobs' progress or phases' lengths."""
GREEDY = {UTILIZATION: "greedy-com", STRETCH: "greedy-yield", SLOWDOWN: "greedy-com"}
"""Who Benoit et al. (JPDC 2024) lead us to expect in front: least rest, and lowest yield first."""


def claims(table: Table) -> list[Claim]:
    """Return the claims on rivals and on PlaFRIM."""
    return [
        *_rivals(table, MIX, BALANCED, "balanced workload"),
        *_rivals(table, PLAFRIM, 0, "PlaFRIM's shares"),
        _fair_finish(table),
        *_plafrim(table),
    ]


def _ranks(table: Table, scenario: str, x: float, metric: str) -> dict[str, float]:
    """Return the mean of each policy, the best first."""
    sign = -1 if metric == UTILIZATION else 1
    means = {
        policy: float(table.values(scenario, x, policy, metric).mean())
        for policy in table.policies(scenario)
    }
    return dict(sorted(means.items(), key=lambda item: sign * item[1]))


def _rivals(table: Table, scenario: str, x: float, where: str) -> list[Claim]:
    ranks = {metric: _ranks(table, scenario, x, metric) for metric in METRICS}
    first = {metric: next(iter(ranks[metric])) for metric in METRICS}
    simple = [policy for policy in ranks[UTILIZATION] if policy not in INTERRUPT]
    margin = gain(table, scenario, UTILIZATION, [x], other=next(p for p in simple if p != SET_10))
    return [
        claim(
            "rivals-greedy-com-wins",
            "; ".join(
                f"{NAMES[metric]}: "
                + ", ".join(f"{policy} {ranks[metric][policy]:.3f}" for policy in ranks[metric])
                for metric in METRICS
            ),
            first == GREEDY,
            where=where,
        ),
        claim(
            "rivals-set10-has-best",
            f"{', '.join(simple)}; set-10 against the next best {percent(margin, 2)}",
            margin.low > 0,
            where=where,
        ),
    ]


def _fair_finish(table: Table) -> Claim:
    places = [*((MIX, x) for x in table.points(MIX)), (PLAFRIM, 0.0)]
    won = {
        (scenario, x, metric): gain(table, scenario, metric, [x], ours="fair-finish", other=SET_10)
        for scenario, x in places
        for metric in METRICS
    }
    behind = [
        f"{NAMES[metric]} {percent(estimate)} at {_place(scenario, x)}"
        for (scenario, x, metric), estimate in won.items()
        if estimate.low <= 0
    ]
    return claim(
        "ours-fair-finish-ahead",
        "; ".join(
            f"{NAMES[metric]} {_range([e for (_, _, m), e in won.items() if m == metric])}"
            for metric in METRICS
        ),
        not behind,
        behind=f" Not ahead: {'; '.join(behind)}." if behind else "",
    )


def _place(scenario: str, x: float) -> str:
    return "PlaFRIM's shares" if scenario == PLAFRIM else f"n_H = {x:g}"


def _range(estimates: list[Estimate]) -> str:
    values = [100 * estimate.value for estimate in estimates]
    return f"{min(values):+.1f}% to {max(values):+.1f}%"


def _plafrim(table: Table) -> list[Claim]:
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
    won = {metric: gain(table, PLAFRIM, metric) for metric in METRICS}
    return [
        claim(
            "viii-shares-sets-s-0",
            " / ".join(f"{p:.2f}" for p in ours) + f" % ({total} synthetic jobs)",
            all(abs(a - b) < tolerance for a, b in zip(ours, paper, strict=True)),
            paper=" / ".join(f"{p:.2f}" for p in paper),
            tolerance=tolerance,
        ),
        claim(
            "viii-most-io-bound",
            f"{sum(ours[1:4]):.1f}% (synthetic)",
            sum(ours[1:4]) > 50,
            paper=sum(paper[1:4]),
        ),
        claim(
            "viii-io-sets-relevant",
            ", ".join(f"{NAMES[metric]} {percent(won[metric])}" for metric in METRICS),
            won[UTILIZATION].low > 0,
        ),
    ]
