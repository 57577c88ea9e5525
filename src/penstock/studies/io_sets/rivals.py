"""set-10 against policies that are told more, ours among them, and on PlaFRIM's shares of sets: the
claims of paper io-sets, Section VIII, and ours."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from penstock.report.findings import Claim
from penstock.sim.generators.io_sets import PLAFRIM_SETS
from penstock.studies.io_sets.gains import (
    METRICS,
    NAMES,
    SET_10,
    SLOWDOWN,
    STRETCH,
    UTILIZATION,
    claim,
    gain,
    gains,
)
from penstock.studies.io_sets.scenarios import FAIRNESS_KNOWLEDGE, HEDGES, hedged
from penstock.studies.table import Estimate, Table, each

MIX, PLAFRIM = "rivals", "rivals-plafrim"
BALANCED = 20.0
EQUAL_KNOWLEDGE, DIVIDED = "equal-knowledge", "equal-knowledge-divided"
DIGITS = {UTILIZATION: ".4f", STRETCH: ".3f", SLOWDOWN: ".3f"}
OURS = {
    "fair-finish": "ours-fair-finish-equal-knowledge",
    "hedged-finish": "ours-hedged-finish-equal-knowledge",
}
"""Our policies, each with the claim on it at equal knowledge."""
INTERRUPT = frozenset({"greedy-yield", "greedy-com", *OURS})
"""Policies that interrupt phases and must be told jobs' progress or phases' lengths."""
GREEDY = {UTILIZATION: "greedy-com", STRETCH: "greedy-yield", SLOWDOWN: "greedy-com"}
"""Who Benoit et al. (JPDC 2024) lead us to expect in front: least rest, and lowest yield first."""


def claims(table: Table) -> list[Claim]:
    """Return the claims on rivals and on PlaFRIM."""
    return [
        *_rivals(table, MIX, BALANCED, "balanced workload"),
        *_rivals(table, PLAFRIM, 0, "PlaFRIM's shares"),
        _fair_finish(table),
        *(_equal_knowledge(table, policy) for policy in OURS),
        *_plafrim(table),
    ]


def equal_knowledge_rows(table: Table, scenario: str) -> Sequence[Sequence[str]]:
    """Return the metrics of every policy, hedged or not, at every error of what it is told."""
    errors = table.points(scenario)
    rows = [("policy", *(f"{NAMES[m]} at {x:g}" for m in METRICS for x in errors))]
    for policy in table.policies(scenario):
        values = {
            (m, x): float(table.values(scenario, x, policy, m).mean())
            for m in METRICS
            for x in errors
        }
        rows.append(
            (
                policy,
                *(f"{v:.4f}" if m == UTILIZATION else f"{v:.3f}" for (m, _), v in values.items()),
            )
        )
    return rows


def fairness_rows(table: Table) -> Sequence[Sequence[str]]:
    """Return what fair-finish gains over set-10 for each value of its option `fairness`."""
    known = dict(zip(FAIRNESS_KNOWLEDGE, ("exact", "0.5 decades off"), strict=True))
    rows = [("fairness", *(f"{NAMES[m]}, {name}" for name in known.values() for m in METRICS))]
    for x in table.points("fairness"):
        won = [
            gain(table, scenario, metric, [x], ours="fair-finish", other=SET_10).value
            for scenario in known
            for metric in METRICS
        ]
        rows.append((f"{x:g}", *(f"{100 * value:+.2f}%" for value in won)))
    return rows


def _named(estimates: Mapping[str, Estimate]) -> str:
    return each({NAMES[metric]: e for metric, e in estimates.items()}, "{} {:+.1%}")


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
    plain_com, hedged_com = (hedged("greedy-com", hedge) for hedge in HEDGES)
    front = {metric: next(iter(ranks[metric])) for metric in METRICS}
    yield claim(
        "rivals-greedy-com-wins",
        "; ".join(f"{NAMES[metric]}: {each(ranks[metric], '{} {:.3f}')}" for metric in METRICS),
        front == GREEDY,
        where=where,
        instead=", ".join(
            f"{policy} in {NAMES[metric]} ({ahead:+.1%} on {GREEDY[metric]})"
            for metric, policy in front.items()
            if policy != GREEDY[metric]
            for ahead in [gain(table, scenario, metric, [x], ours=policy, other=GREEDY[metric])]
        ),
        hedge=gain(table, EQUAL_KNOWLEDGE, SLOWDOWN, [0.0], ours=hedged_com, other=plain_com),
        by_yield=gain(table, scenario, SLOWDOWN, [x], ours="fair-finish", other="greedy-com"),
    )
    yield claim(
        "rivals-set10-has-best",
        f"{', '.join(simple)}; set-10 against the next best {margin:+.2%}",
        margin.low > 0,
        where=where,
        by_spread=each(
            gains(table, "figure-9", UTILIZATION, other="share-priority"), "{:g}: {:+.2%}"
        ),
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
    errors, ours = table.points(EQUAL_KNOWLEDGE), hedged(policy, HEDGES[-1])
    won = {
        metric: {
            x: gain(table, EQUAL_KNOWLEDGE, metric, [x], ours=ours, other=SET_10) for x in errors
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
    workloads = len(table.rows(EQUAL_KNOWLEDGE, errors[0], ours))
    return claim(
        OURS[policy],
        f"at {', '.join(f'{x:g}' for x in errors)} decades: {'; '.join(values)}",
        not behind,
        hedge=HEDGES[-1],
        behind=f" No significant gain: {behind} ({workloads} workloads)." if behind else "",
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
