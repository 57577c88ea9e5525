"""The benefit of turns on this machine: twelve real jobs, first unmanaged, then managed.

Jobs of different periods write to an emulated file system. Unmanaged, they share it as they come;
managed, the controller learns their periods and gives them turns by set-10. Everything but the
file system's speed is real.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np

from penstock import registry
from penstock.campaign.cells import Cell, Results
from penstock.campaign.journal import Row, Value
from penstock.campaign.sizes import Size
from penstock.live.protocol import messages
from penstock.report.findings import (
    Claim,
    ClaimReference,
    Figure,
    Findings,
    Lanes,
)
from penstock.sim.engine import simulate
from penstock.sim.generators.io_sets import periodic
from penstock.sim.metrics import measure, measure_jobs
from penstock.sim.run import Run
from penstock.sim.workload import Floats, Workload
from penstock.studies.io_sets.gains import METRICS, NAMES, SLOWDOWN, UTILIZATION
from penstock.studies.live.testbed import Measured, measured
from penstock.studies.panels import bars, stretch
from penstock.studies.study import Study
from penstock.studies.texts import captions_of, claims_of, findings_of

claim = claims_of("demo")


figure = captions_of("demo")

SHORT, LONG = (0.5, 0.6, 0.7, 0.8), (4.0, 5.0, 6.0, 7.0)
"""Seconds of an iteration: w_iter in set-10's sets S_0 and S_1."""
SHORT_IO, LONG_IO = 0.03, 0.1
"""The part of an iteration that is I/O when a job is alone."""
WINDOWS: Mapping[Size, tuple[float, float]] = {
    "quick": (2.0, 10.0),
    "fast": (4.0, 26.0),
    "full": (4.0, 26.0),
}
"""Seconds in which metrics are taken."""
DRAWN = 16.0
"""The last seconds of a run that are drawn, at most."""
REPEATED: Mapping[str, ClaimReference] = {
    UTILIZATION: ClaimReference(
        study="live-io-sets",
        claim=f"Managed, the mean {NAMES[UTILIZATION]} over n_H is better than unmanaged",
    ),
    SLOWDOWN: ClaimReference(
        study="io-sets",
        claim=f"VI-B1: SET-10's {NAMES[SLOWDOWN]} is better than FAIR-SHARE's",
    ),
}
"""Where the claims are held against more than one run."""
UNMANAGED, MANAGED = "unmanaged", "managed"
MODES: dict[str, tuple[Literal["off", "enforce"], str]] = {
    UNMANAGED: ("off", "fair-share"),
    MANAGED: ("enforce", "set-10"),
}
EXPLAINED = {
    UNMANAGED: "transfers collide, and all take longer",
    MANAGED: "one of each set transfers at a time, short periods with more share",
}


def workload(until: float = WINDOWS["fast"][1], *, seed: int = 0) -> Workload:
    """Return the jobs: one of each short period, two of each long one.

    They are released at random within their first iteration: pairs of one period that began
    together would stay in step, which is the worst case of an unmanaged file system.
    """
    jobs = {f"{w:g}s": (w, SHORT_IO) for w in SHORT}
    jobs |= {f"{w:g}s-{copy}": (w, LONG_IO) for w in LONG for copy in "ab"}
    w_iter, alpha_io = zip(*jobs.values(), strict=True)
    jobs_workload = periodic(w_iter, alpha_io, horizon=2 * until)
    jobs_workload.ids = list(jobs)
    jobs_workload.release = np.random.default_rng(seed).uniform(0, w_iter)
    return jobs_workload


def run_cell(cell: Cell, *, window: tuple[float, float], seed: int) -> list[dict[str, Value]]:
    """Run all jobs, managed or not."""
    mode, policy = MODES[cell.scenario]
    options = {"unknown": 1} if policy == "set-10" else {}
    jobs = workload(window[1], seed=seed)
    outcome = measured(
        jobs,
        policy=policy,
        options=options,
        mode=mode,
        until=window[1],
        watch=partial(_tell, cell.scenario, window[1]),
    )
    base: dict[str, Value] = {"scenario": cell.scenario, "fail_opens": outcome.fail_opens}
    simulated = simulate(jobs, registry.sharing(policy), marks=window)
    return [
        base | {"what": "measured", **_metrics(outcome.run, window)},
        base | {"what": "simulated", **_metrics(simulated, window)},
        *(base | row for row in _jobs(outcome.run, window)),
        *(base | row for row in _stretches(outcome)),
    ]


def _tell(label: str, until: float, seconds: float, status: messages.Status) -> None:
    doing = [job.doing for job in status.jobs]
    sys.stderr.write(
        f"{label}, {seconds:4.0f} s of {until:g}: {doing.count('transferring')} jobs transfer, "
        f"{doing.count('waiting')} wait, {doing.count('computing')} compute\n"
    )


def _metrics(run: Run, window: tuple[float, float]) -> dict[str, Value]:
    metrics = measure(run, window)
    return {name: getattr(metrics, name) for name in METRICS}


def _jobs(run: Run, window: tuple[float, float]) -> list[dict[str, Value]]:
    slowdown = measure_jobs(run, window).io_slowdown
    return [
        {"what": "job", "job": run.workload.id(j), SLOWDOWN: float(slowdown[j])}
        for j in range(len(run.workload))
    ]


def _stretches(outcome: Measured) -> list[dict[str, Value]]:
    """Return what each job did when; a transfer has the mean share that it turned out to have."""
    rows: list[dict[str, Value]] = []
    run, offsets = outcome.run, outcome.run.workload.offsets
    for j in range(len(run.workload)):
        since = float(run.start[j])
        for i in range(int(offsets[j]), int(offsets[j + 1])):
            request, turn, end = (float(t[i]) for t in (run.request, outcome.turn, run.end))
            share = min(float(run.workload.io[i]) / max(end - turn, 1e-9), 1.0)
            parts = ((since, request, "compute"), (request, turn, "wait"), (turn, end, "io"))
            base: dict[str, Value] = {"what": "stretch", "job": run.workload.id(j)}
            for start, stop, doing in parts:
                rows.append(base | {"start": start, "end": stop, "doing": doing, "share": share})
            since = end
    return rows


def findings(results: Results) -> Findings:
    """Return the comparison."""
    rows = {label: [row for row in results.rows if row["scenario"] == label] for label in MODES}
    window = WINDOWS[results.campaign.size]
    jobs = workload(window[1]).ids or ()
    return findings_of(
        "demo",
        table=_table(rows, jobs),
        figures=[_lanes(rows, jobs, window), _bars(rows, jobs)],
        claims=[_claim(rows, metric) for metric in (UTILIZATION, SLOWDOWN)],
        provenance=(("window", f"{window[0]:g} to {window[1]:g} s of each run"),),
        jobs=len(jobs),
    )


Rows = dict[str, list[Row]]


def _of(rows: Rows, label: str, what: str, metric: str) -> Floats:
    return np.array([row[metric] for row in rows[label] if row["what"] == what], float)


def _table(rows: Rows, jobs: Sequence[str]) -> list[tuple[str, ...]]:
    table: list[tuple[str, ...]] = [
        ("", UNMANAGED, MANAGED, "simulated: fair-share", "simulated: set-10")
    ]
    for metric in METRICS:
        table.append(
            (
                NAMES[metric],
                *(f"{_of(rows, label, 'measured', metric)[0]:.3f}" for label in MODES),
                *(f"{_of(rows, label, 'simulated', metric)[0]:.3f}" for label in MODES),
            )
        )
    for j, job in enumerate(jobs):
        slowdown = (f"{_of(rows, label, 'job', SLOWDOWN)[j]:.2f}" for label in MODES)
        table.append((f"I/O slowdown of the job of {job}", *slowdown, "", ""))
    return table


def _lanes(rows: Rows, jobs: Sequence[str], window: tuple[float, float]) -> Figure:
    def panel(label: str) -> Lanes:
        computing = _of(rows, label, "measured", UTILIZATION)[0]
        return Lanes(
            title=f"{label}: {100 * computing:.0f}% computing",
            note=EXPLAINED[label],
            x="time (s)" if label == MANAGED else "",
            jobs=jobs,
            stretches=[stretch(row) for row in rows[label] if row["what"] == "stretch"],
            window=(max(window[0], window[1] - DRAWN), window[1]),
        )

    return figure("lanes", [panel(label) for label in MODES], stacked=True)


def _bars(rows: Rows, jobs: Sequence[str]) -> Figure:
    utilization, slowdown = (
        {label: _of(rows, label, what, metric).tolist() for label in MODES}
        for what, metric in (("measured", UTILIZATION), ("job", SLOWDOWN))
    )
    panels = [
        bars("Utilization (higher is better)", ["all jobs"], utilization),
        bars("I/O slowdown a job (lower is better)", jobs, slowdown, key=True),
    ]
    return figure("gains", panels)


def _claim(rows: Rows, metric: str) -> Claim:
    other, ours = (float(_of(rows, label, "measured", metric)[0]) for label in MODES)
    higher = metric == UTILIZATION
    return claim(
        "managed",
        f"{ours:.3f} managed, {other:.3f} unmanaged",
        ours > other if higher else ours < other,
        repeats=REPEATED[metric],
        metric=NAMES[metric],
        higher="higher" if higher else "lower",
        higher_2="higher (Figure 4)" if higher else "lower (Figure 6)",
    )


STUDY = Study(
    name="demo",
    title="A first look: real jobs on an emulated file system, unmanaged and managed",
    version=4,
    cells=lambda _: [Cell(scenario=label, x=0, workload=0) for label in MODES],
    run_cell=lambda size, seed: partial(run_cell, window=WINDOWS[size], seed=seed),
    findings=findings,
    alone=True,
)
