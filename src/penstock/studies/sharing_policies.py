"""A first look: the sharing policies on the paper's workload, and why they differ.

Some workloads of paper io-sets (20 jobs each with w_iter around 10, 100 and 1000 s) under every
policy, and five jobs drawn out so that the idea behind set-10 can be seen.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from penstock import registry
from penstock.campaign.cells import Cell, Results, every
from penstock.campaign.journal import Row, Value
from penstock.campaign.sizes import Size
from penstock.report.findings import Claim, ClaimReference, Figure, Findings, Lanes, Stretch
from penstock.sim.engine import simulate
from penstock.sim.generators.io_sets import io_sets, three_profiles
from penstock.sim.metrics import measure
from penstock.sim.run import Run
from penstock.sim.workload import Workload
from penstock.studies.io_sets.figures import metric_dots
from penstock.studies.io_sets.gains import (
    EXCLUSIVE,
    FAIR_SHARE,
    METRICS,
    NAMES,
    SET_10,
    SLOWDOWN,
    UTILIZATION,
    gain,
)
from penstock.studies.io_sets.scenarios import HEDGES, NEED_LENGTHS, hedged
from penstock.studies.panels import stretch
from penstock.studies.study import Study, published
from penstock.studies.table import Table, row
from penstock.studies.texts import captions_of, claims_of, findings_of

claim = claims_of("sharing-policies")


figure = captions_of("sharing-policies")

WORKLOADS, EXAMPLE = "balanced", "example"
DRAWN: Mapping[Size, int] = {"quick": 2, "fast": 8, "full": 40}
SEEN = (0.0, 240.0)
"""The seconds of the example that are drawn."""
LONG, SHORT = (75.0, 25.0), (9.2, 0.8)
"""Compute and I/O of an iteration: w_iter 100 s and 10 s, so set-10's sets S_2 and S_1."""
EXAMPLE_JOBS = {
    "long 1": (0.0, LONG),
    "long 2": (6.0, LONG),
    "short 1": (0.0, SHORT),
    "short 2": (3.0, SHORT),
    "short 3": (6.0, SHORT),
}
NOTES = {
    FAIR_SHARE: "long transfers halve each other's share and take twice the time",
    EXCLUSIVE: "short jobs wait behind long transfers",
    SET_10: "long transfers take turns, short ones get ten times the share",
}

CONTENDERS: Mapping[str, tuple[str, Mapping[str, float]]] = {
    **{
        name: (name, {})
        for name in (
            "clairvoyant-sets",
            "exclusive-fcfs",
            "fair-share",
            "greedy-yield",
            "set-10",
            "set-fair-share",
            "share-priority",
        )
    },
    **{hedged(name, h): (name, {"hedge": h}) for name in NEED_LENGTHS for h in HEDGES},
}
"""Policies by label; those that are told the lengths of phases with and without a hedge."""


def run_cell(cell: Cell, *, seed: int) -> list[dict[str, Value]]:
    """Run one cell of the study."""
    if cell.scenario == EXAMPLE:
        return [row for policy in NOTES for row in _example_rows(cell, policy)]
    workload = io_sets(three_profiles(20, 20, 20), seed=(seed, cell.workload))
    return [_row(cell, workload, policy) for policy in CONTENDERS]


def _row(cell: Cell, workload: Workload, policy: str) -> dict[str, Value]:
    name, options = CONTENDERS[policy]
    metrics = measure(simulate(workload, published(name, options)))
    return row(cell, policy, **{name: getattr(metrics, name) for name in METRICS})


def _example() -> Workload:
    lengths = [lengths for _, lengths in EXAMPLE_JOBS.values()]
    counts = [int(np.ceil(2 * SEEN[1] / sum(pair))) for pair in lengths]
    return Workload(
        ids=list(EXAMPLE_JOBS),
        compute=np.repeat([compute for compute, _ in lengths], counts),
        io=np.repeat([io for _, io in lengths], counts),
        offsets=np.concatenate(([0], np.cumsum(counts))),
        release=[release for release, _ in EXAMPLE_JOBS.values()],
    )


def _example_rows(cell: Cell, policy: str) -> list[dict[str, Value]]:
    run = simulate(_example(), registry.sharing(policy), timeline=True)
    return [
        row(cell, policy, job=job, start=start, end=end, doing=doing, share=share)
        for job, start, end, doing, share in _stretches(run)
        if start < SEEN[1]
    ]


def _stretches(run: Run) -> list[tuple[str, float, float, str, float]]:
    """Return what each job did when; waiting lies under what it then transferred."""
    parts: list[tuple[str, float, float, str, float]] = []
    offsets = run.workload.offsets
    for j in range(len(run.workload)):
        job, since = run.workload.id(j), float(run.start[j])
        for i in range(int(offsets[j]), int(offsets[j + 1])):
            request, end = float(run.request[i]), float(run.end[i])
            parts.append((job, since, request, "compute", 0.0))
            parts.append((job, request, end, "wait", 0.0))
            since = end
    timeline = run.timeline
    assert timeline is not None
    columns = (timeline.job, timeline.start, timeline.end, timeline.share)
    for j, start, stop, share in zip(*(column.tolist() for column in columns), strict=True):
        parts.append((run.workload.id(j), start, stop, "io", share))
    return parts


def findings(results: Results) -> Findings:
    """Return the comparison, ordered by Utilization."""
    example = [row for row in results.rows if row["scenario"] == EXAMPLE]
    table = Table(row for row in results.rows if row["scenario"] == WORKLOADS)
    workloads = len(table.rows(WORKLOADS, 0, SET_10))
    means = {p: table.mean(WORKLOADS, 0, p, UTILIZATION).value for p in table.policies(WORKLOADS)}
    policies = sorted(means, key=lambda policy: -means[policy])
    dots = [metric_dots(table, WORKLOADS, 0, metric, policies) for metric in METRICS]
    return findings_of(
        "sharing-policies",
        table=_table(table, policies),
        figures=[_lanes(example), figure("policies", dots, workloads=workloads)],
        claims=claims(table),
        provenance=(("workloads", str(workloads)), ("spread", "standard deviation over workloads")),
        workloads=workloads,
    )


def _table(table: Table, policies: list[str]) -> list[tuple[str, ...]]:
    rows = [("policy", *(NAMES[metric] for metric in METRICS), "gain over fair-share")]
    for policy in policies:
        values = [table.values(WORKLOADS, 0, policy, metric) for metric in METRICS]
        won = gain(table, WORKLOADS, UTILIZATION, ours=policy).value
        rows.append(
            (policy, *(f"{v.mean():.3f} ± {v.std():.3f}" for v in values), f"{100 * won:+.1f} %")
        )
    return rows


def _lanes(rows: list[Row]) -> Figure:
    def panel(policy: str) -> Lanes:
        parts = [stretch(row) for row in rows if row["policy"] == policy]
        return Lanes(
            title=f"{policy}: {100 * _computing(parts):.0f}% computing",
            note=NOTES[policy],
            x="time (s)" if policy == list(NOTES)[-1] else "",
            jobs=list(EXAMPLE_JOBS),
            stretches=parts,
            window=SEEN,
        )

    return figure("example", [panel(policy) for policy in NOTES], stacked=True)


def _computing(parts: Sequence[Stretch]) -> float:
    """Return the part of the jobs' drawn time in which they compute."""
    released = sum(SEEN[1] - release for release, _ in EXAMPLE_JOBS.values())
    computed = sum(min(p.end, SEEN[1]) - p.start for p in parts if p.doing == "compute")
    return computed / released


def claims(table: Table) -> list[Claim]:
    """Return what of the paper's claims can be seen at a first look."""
    won = {metric: gain(table, WORKLOADS, metric) for metric in (UTILIZATION, SLOWDOWN)}
    lost = gain(table, WORKLOADS, UTILIZATION, ours=FAIR_SHARE, other=EXCLUSIVE)
    return [
        claim(
            "set10-utilization-higher",
            f"{won[UTILIZATION]:+.1%}",
            won[UTILIZATION].low > 0,
            repeats=_better(UTILIZATION),
        ),
        claim(
            "set10-io-slowdown",
            f"{won[SLOWDOWN]:+.0%}",
            won[SLOWDOWN].low > 0,
            repeats=_better(SLOWDOWN),
        ),
        claim(
            "exclusive-fcfs-worse",
            f"Utilization behind by {lost:+.1%}",
            lost.low > 0,
            repeats=ClaimReference(
                study="io-sets",
                claim="VI-B1: EXCLUSIVE-FCFS has poor results compared to the others",
            ),
        ),
    ]


def _better(metric: str) -> ClaimReference:
    claim = f"VI-B1: SET-10's {NAMES[metric]} is better than FAIR-SHARE's"
    return ClaimReference(study="io-sets", claim=claim)


STUDY = Study(
    name="sharing-policies",
    title="A first look: all sharing policies on the IO-SETS paper's workload",
    version=3,
    cells=lambda size: [*every(EXAMPLE, (0,), 1), *every(WORKLOADS, (0,), DRAWN[size])],
    run_cell=lambda _, seed: partial(run_cell, seed=seed),
    findings=findings,
)
