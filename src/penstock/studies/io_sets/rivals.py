"""Claims on who wins what when policies of others and of ours join in, and on PlaFRIM's sets."""

from collections import Counter

from penstock.report.findings import Claim
from penstock.sim.generators.io_sets import PLAFRIM_SETS
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
    margin = gain(table, scenario, UTILIZATION, [x], theirs=next(p for p in simple if p != SET_10))
    return [
        Claim(
            claim=f"Rivals, {where}: greedy-com wins Utilization and IO-slowdown, greedy-yield "
            "Max Stretch",
            by="penstock",
            paper="not in the paper; the policies to beat (Benoit et al., JPDC 2024)",
            ours="; ".join(
                f"{NAMES[metric]}: "
                + ", ".join(f"{policy} {ranks[metric][policy]:.3f}" for policy in ranks[metric])
                for metric in METRICS
            ),
            holds=first == GREEDY,
            why="Rule: best mean of all policies. They interrupt phases, greedy-com knows how "
            "long each one is, greedy-yield how far each job is; set-10 does with w_iter.",
        ),
        Claim(
            claim=f"Rivals, {where}: SET-10 has the best Utilization of the policies that never "
            "interrupt a phase",
            by="penstock",
            paper="not in the paper",
            ours=f"{', '.join(simple)}; set-10 against the next best {percent(margin, 2)}",
            holds=margin.low > 0,
            why="Rule: significantly better than the next best."
            + (
                ""
                if margin.low > 0
                else " With sets a whole decade wide, waiting inside a set costs as much as it "
                "saves: weights without sets (share-priority) do as well."
            ),
        ),
    ]


def _fair_finish(table: Table) -> Claim:
    places = [*((MIX, x) for x in table.points(MIX)), (PLAFRIM, 0.0)]
    won = {
        (scenario, x, metric): gain(table, scenario, metric, [x], ours="fair-finish", theirs=SET_10)
        for scenario, x in places
        for metric in METRICS
    }
    behind = [
        f"{NAMES[metric]} {percent(estimate)} at {_place(scenario, x)}"
        for (scenario, x, metric), estimate in won.items()
        if estimate.low <= 0
    ]
    return Claim(
        claim="Ours: fair-finish is ahead of SET-10 in all three metrics at once, everywhere",
        by="penstock",
        paper="not in the paper",
        ours="; ".join(
            f"{NAMES[metric]} {_range([e for (_, _, m), e in won.items() if m == metric])}"
            for metric in METRICS
        ),
        holds=not behind,
        why="Rule: significant gains at every n_H and on PlaFRIM's shares. It interrupts phases "
        "and is told their lengths." + (f" Not ahead: {'; '.join(behind)}." if behind else ""),
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
    total, known = sum(jobs.values()), sum(PLAFRIM_SETS)
    ours = [100 * jobs[number] / total for number in range(len(PLAFRIM_SETS))]
    paper = [100 * count / known for count in PLAFRIM_SETS]
    # Three standard errors of the least certain share, which is the one nearest to a half.
    tolerance = 3 * max((p * (100 - p) / total) ** 0.5 for p in paper)
    won = {metric: gain(table, PLAFRIM, metric) for metric in METRICS}
    return [
        Claim(
            claim="VIII: shares of the sets S_0 to S_5 in a year of PlaFRIM's jobs",
            by="io-sets",
            paper=" / ".join(f"{p:.2f}" for p in paper) + " %",
            ours=" / ".join(f"{p:.2f}" for p in ours) + f" % ({total} synthetic jobs)",
            holds=all(abs(a - b) < tolerance for a, b in zip(ours, paper, strict=True)),
            why=f"Rule: each share within {tolerance:.1f} points (three standard errors). The "
            "synthetic jobs are drawn with the paper's shares, so this checks our generator and "
            "set-10's mapping, not the traces, which are not public. The shares of windows with "
            "several sets need those traces.",
        ),
        Claim(
            claim="VIII: most I/O-bound jobs are in the sets S_1 to S_3",
            by="io-sets",
            paper=f"{sum(paper[1:4]):.1f}%",
            ours=f"{sum(ours[1:4]):.1f}% (synthetic)",
            holds=sum(ours[1:4]) > 50,
            why="Rule: more than half; by construction, as above.",
        ),
        Claim(
            claim="VIII: IO-SETS is relevant on such a machine: SET-10 gains over FAIR-SHARE there",
            by="io-sets",
            paper="relevant (no figure)",
            ours=", ".join(f"{NAMES[metric]} {percent(won[metric])}" for metric in METRICS),
            holds=won[UTILIZATION].low > 0,
            why="Rule: a significant gain in Utilization. 60 jobs in PlaFRIM's shares, omega 0.8; "
            "inside a set, log10 w_iter is uniform (our choice), so sets are as wide as can be "
            "and Max Stretch does not gain.",
        ),
    ]
