"""The live validation of paper io-sets (Section VI-A, Figure 4), with time divided by a hundred.

Sixteen jobs that do I/O for a sixteenth of their time, n_H of them with w_iter = 0.64 s, the others
6.4 s (a power of ten keeps the sets), all released at once. Each is a real process under `penstock
run`; the controller learns w_iter while they run, as it would anywhere. The same workload is
simulated, under set-10 and under fair-share. Metrics of both are taken by the same code.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean

from penstock import registry
from penstock.campaign.cells import Cell, Results, every
from penstock.campaign.journal import Row, Value
from penstock.campaign.sizes import Size
from penstock.report.findings import Claim, Figure, Findings, Series
from penstock.sim.engine import simulate
from penstock.sim.generators.io_sets import periodic
from penstock.sim.metrics import measure
from penstock.sim.run import Run
from penstock.sim.workload import Workload
from penstock.studies.io_sets.gains import METRICS, NAMES, STRETCH, UTILIZATION
from penstock.studies.io_sets.practice import in_practice
from penstock.studies.live.testbed import Measured, measured
from penstock.studies.panels import curves
from penstock.studies.study import Study
from penstock.studies.table import Table, row
from penstock.studies.texts import captions_of, claims_of, findings_of

claim = claims_of("live-io-sets")


figure = captions_of("live-io-sets")

SCENARIO = "figure-4-live"
JOBS, TIME = 16, 100.0
HIGH, LOW = 64 / TIME, 640 / TIME
HORIZON, WINDOW = 6400 / TIME, (1300 / TIME, 6300 / TIME)
PARTS: Mapping[Size, float] = {"quick": 0.125, "fast": 0.5, "full": 1.0}
"""The part of the horizon, and of its window, that jobs run for."""
POINTS: Mapping[Size, Sequence[int]] = {
    "quick": (8,),
    "fast": (0, 8, 12, 16),
    "full": range(JOBS + 1),
}
"""The values of n_H: the paper's range (40 minutes), or some of it for a shorter time."""
MANAGED, UNMANAGED = "set-10, live", "unmanaged, live"
SIMULATED, FAIR_SHARE = "set-10, simulated", "fair-share, simulated"
LOWEST = 1
"""The lowest-priority set of this site, in which unknown jobs begin."""
RUNS_NEAR = 0.8
FEWEST = 10
"""Runs without which "80% of the runs" gets no verdict: of four, one would decide."""
PAPER_NEAR = {UTILIZATION: 0.035, STRETCH: 0.015}
"""80% of the paper's runs were so near its simulations."""
NEAR = 0.05
"""Our own bar, for phases that are a hundredth of the paper's."""


def workload(n_high: int, *, part: float = 1.0) -> Workload:
    """Return the paper's jobs for a part of its horizon."""
    w_iter = [HIGH] * n_high + [LOW] * (JOBS - n_high)
    drawn = periodic(w_iter, [1 / JOBS] * JOBS, horizon=part * HORIZON)
    drawn.ids = [f"{'high' if w == HIGH else 'low'}-{j}" for j, w in enumerate(w_iter)]
    return drawn


def run_cell(cell: Cell, *, part: float) -> list[dict[str, Value]]:
    """Run one mix of jobs, managed and unmanaged, and simulate both."""
    jobs = workload(int(cell.x), part=part)
    window = (part * WINDOW[0], part * WINDOW[1])
    rows = []
    for label, outcome in (
        (MANAGED, managed(jobs, window[1])),
        (UNMANAGED, measured(jobs, policy="fair-share", mode="off", until=window[1])),
    ):
        counted: dict[str, Value] = {"turns": outcome.turns, "fail_opens": outcome.fail_opens}
        rows.append(_row(cell, label, outcome.run, window) | counted)
    for label, policy in ((SIMULATED, "set-10"), (FAIR_SHARE, "fair-share")):
        simulated = simulate(jobs, registry.sharing(policy), marks=window)
        rows.append(_row(cell, label, simulated, window))
    return rows


def managed(jobs: Workload, until: float) -> Measured:
    """Run jobs by turns of set-10, which learns their w_iter."""
    options = {"unknown": LOWEST}
    return measured(jobs, policy="set-10", options=options, mode="enforce", until=until)


def _row(cell: Cell, label: str, run: Run, window: tuple[float, float]) -> dict[str, Value]:
    metrics = measure(run, window)
    return row(cell, label, **{name: getattr(metrics, name) for name in METRICS})


def differences(table: Table, metric: str) -> dict[tuple[float, int], float]:
    """Return by how much each managed run is off its simulation, as a fraction."""
    result = {}
    for x in table.points(SCENARIO):
        live, simulated = (table.rows(SCENARIO, x, p) for p in (MANAGED, SIMULATED))
        for k, (ours, other) in enumerate(zip(live, simulated, strict=True)):
            result[x, k] = _value(ours, metric) / _value(other, metric) - 1
    return result


def _value(row: Row, metric: str) -> float:
    return float(row[metric] or 0)


def within(off: dict[tuple[float, int], float], most: float) -> float:
    """Return the share of runs whose difference is at most `most`."""
    return sum(abs(value) <= most for value in off.values()) / len(off)


def findings(results: Results) -> Findings:
    """Return how near the simulations are, and the benefit of turns."""
    table = Table(results.rows)
    return findings_of(
        "live-io-sets",
        claims=claims(table),
        figures=[_figure_4(table)],
        provenance=(("jobs", f"{JOBS}, each a process under 'penstock run'"),),
        jobs=JOBS,
    )


def claims(table: Table) -> list[Claim]:
    """Return the paper's claims of Section VI-A, by its bar and by ours."""
    metrics = (UTILIZATION, STRETCH)
    return [
        *(_near(table, metric, PAPER_NEAR[metric], "managed-runs-have") for metric in metrics),
        *(_near(table, metric, NEAR, "ours-managed-runs-have") for metric in metrics),
        *(_better(table, metric) for metric in metrics),
        _gain(table),
        _counted(table),
    ]


def _near(table: Table, metric: str, most: float, name: str) -> Claim:
    off = differences(table, metric)
    worst = max(off, key=lambda run: abs(off[run]))
    return claim(
        name,
        f"{100 * within(off, most):.0f}% of {len(off)} runs within {100 * most:g}%; at most "
        f"{100 * off[worst]:+.1f}% (n_H = {worst[0]:g})",
        within(off, most) >= RUNS_NEAR if len(off) >= FEWEST else None,
        fewest=FEWEST,
        metric=NAMES[metric],
        near=100 * most,
        runs_near=100 * RUNS_NEAR,
        time=TIME,
    )


def _means(table: Table, policy: str, metric: str) -> dict[float, float]:
    """Return a metric for each n_H."""
    means = table.grid(SCENARIO, policy, metric).mean(axis=0).tolist()
    return dict(zip(table.points(SCENARIO), means, strict=True))


def _better(table: Table, metric: str) -> Claim:
    def better(ours: float, other: float) -> bool:
        return ours > other if metric == UTILIZATION else ours < other

    by_policy = {
        policy: _means(table, policy, metric)
        for policy in (MANAGED, UNMANAGED, SIMULATED, FAIR_SHARE)
    }
    mean = {policy: fmean(values.values()) for policy, values in by_policy.items()}
    worse = [
        f"{n_high:g} ({ours:.3f} : {by_policy[UNMANAGED][n_high]:.3f})"
        for n_high, ours in by_policy[MANAGED].items()
        if not better(ours, by_policy[UNMANAGED][n_high])
    ]
    overall = better(mean[MANAGED], mean[UNMANAGED])
    return claim(
        "managed-mean-over",
        f"{mean[MANAGED]:.3f} managed, {mean[UNMANAGED]:.3f} unmanaged (simulated: set-10 "
        f"{mean[SIMULATED]:.3f}, fair-share {mean[FAIR_SHARE]:.3f}); "
        + (f"not better at n_H = {', '.join(worse)}" if worse else "better at every n_H"),
        overall,
        readings={"the mean over n_H": overall, "every n_H": not worse},
        metric=NAMES[metric],
    )


def _gain(table: Table) -> Claim:
    ours, other = (_means(table, policy, UTILIZATION) for policy in (MANAGED, UNMANAGED))
    gains = {n_high: value / other[n_high] - 1 for n_high, value in ours.items()}
    ends = [function(gains, key=gains.__getitem__) for function in (min, max)]
    return claim(
        "practical-gain",
        " to ".join(f"{gains[n_high]:+.0%} (n_H = {n_high:g})" for n_high in ends),
        in_practice(min(gains.values()), max(gains.values())),
    )


def _counted(table: Table) -> Claim:
    rows = [row for x in table.points(SCENARIO) for row in table.rows(SCENARIO, x, MANAGED)]
    opened = sum(int(row["fail_opens"] or 0) for row in rows)
    return claim(
        "no-gate-opened",
        f"{opened} of {sum(int(row['turns'] or 0) for row in rows)} turns",
        opened == 0,
    )


def _figure_4(table: Table) -> Figure:
    points = table.points(SCENARIO)

    def curve(policy: str, metric: str) -> Series:
        grid = table.grid(SCENARIO, policy, metric)
        spread = {"low": grid.min(axis=0), "high": grid.max(axis=0)} if len(grid) > 1 else {}
        return Series(label=policy, x=points, y=grid.mean(axis=0), **spread)

    panels = []
    for metric, better in ((STRETCH, "lower"), (UTILIZATION, "higher")):
        series = [curve(policy, metric) for policy in (MANAGED, SIMULATED, UNMANAGED, FAIR_SHARE)]
        title, x = f"{NAMES[metric]} ({better} is better)", "$n_H$, jobs with $w_{iter}$ = 0.64 s"
        panels.append(curves(title, x, NAMES[metric], series))
    return figure("figure-4-live", panels)


STUDY = Study(
    name="live-io-sets",
    title="IO-SETS on real processes (Section VI-A, Figure 4): live against simulated",
    version=2,
    cells=lambda size: every(SCENARIO, POINTS[size], 1),
    run_cell=lambda size, _: partial(run_cell, part=PARTS[size]),
    findings=findings,
    alone=True,
)
