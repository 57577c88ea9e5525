"""The live validation of paper io-sets (Section VI-A, Figure 4), with time divided by a hundred.

Sixteen jobs that do I/O for a sixteenth of their time, n_H of them with w_iter = 0.64 s, the others
6.4 s (a power of ten keeps the sets), all released at once. Each is a real process under `penstock
run`; the controller learns w_iter while they run, as it would anywhere. The same workload is
simulated, under set-10 and under fair-share. Metrics of both are taken by the same code.
"""

from collections.abc import Mapping, Sequence
from functools import partial

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
    "quick": (4, 12),
    "fast": (0, 8, 12, 16),
    "full": range(JOBS + 1),
}
"""The values of n_H: the paper's range (40 minutes), or some of it for a shorter time."""
MANAGED, UNMANAGED = "set-10, live", "unmanaged, live"
SIMULATED, FAIR_SHARE = "set-10, simulated", "fair-share, simulated"
LOWEST = 1
"""The lowest-priority set of this site, in which unknown jobs begin."""
NEAR, RUNS_NEAR = 0.05, 0.8
PAPER_NEAR = {UTILIZATION: 0.035, STRETCH: 0.015}
"""80% of the paper's runs were so near its simulations."""


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
    """Return the paper's claims of Section VI-A."""
    return [
        *(_near(table, metric) for metric in (UTILIZATION, STRETCH)),
        *(_better(table, metric) for metric in (UTILIZATION, STRETCH)),
        _counted(table),
    ]


def _near(table: Table, metric: str) -> Claim:
    off, paper = differences(table, metric), PAPER_NEAR[metric]
    worst = max(off, key=lambda run: abs(off[run]))
    return claim(
        "managed-runs-have",
        f"{100 * within(off, NEAR):.0f}% of {len(off)} runs within {100 * NEAR:g}%, "
        f"{100 * within(off, paper):.0f}% within {100 * paper:g}%; at most "
        f"{100 * off[worst]:+.1f}% (n_H = {worst[0]:g})",
        within(off, NEAR) >= RUNS_NEAR,
        metric=NAMES[metric],
        paper=100 * paper,
        runs_near=100 * RUNS_NEAR,
        near=100 * NEAR,
    )


def _mean(table: Table, policy: str, metric: str) -> float:
    return float(table.grid(SCENARIO, policy, metric).mean())


def _better(table: Table, metric: str) -> Claim:
    ours, other = (_mean(table, p, metric) for p in (MANAGED, UNMANAGED))
    simulated, fair_share = (_mean(table, p, metric) for p in (SIMULATED, FAIR_SHARE))
    return claim(
        "managed-mean-over",
        f"{ours:.3f} managed, {other:.3f} unmanaged (simulated: set-10 {simulated:.3f}, "
        f"fair-share {fair_share:.3f})",
        ours > other if metric == UTILIZATION else ours < other,
        metric=NAMES[metric],
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
    version=1,
    cells=lambda size: every(SCENARIO, POINTS[size], 1),
    run_cell=lambda size, _: partial(run_cell, part=PARTS[size]),
    findings=findings,
    alone=True,
)
