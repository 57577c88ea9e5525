"""Chapter 3 of J. L. Bez's thesis: access patterns told at run time from I/O nodes' metrics.

The observations are ours: real I/O nodes, real processes, on an emulated file system. In small the
study learns from those that come with the package; --full takes them again.
"""

from functools import partial

from penstock.campaign.cells import Cell, Results, every
from penstock.campaign.journal import Value
from penstock.campaign.sizes import FULL, Size
from penstock.learn.detection import samples
from penstock.live.measure import pattern_survey
from penstock.live.measure.scratch import in_memory, interruptible, private_state
from penstock.report.findings import Findings
from penstock.studies.detection import claims, times
from penstock.studies.detection.comparison import Comparison
from penstock.studies.study import Study
from penstock.studies.texts import findings_of

VERSION = 2
SHIPPED = "shipped"
GRID = pattern_survey.Grid()


def cells_of(size: Size) -> list[Cell]:
    """Return what is to be measured; in small only times are."""
    timing = list(every(times.TIMES, (0,), 1))
    if size != FULL:
        return [*every(SHIPPED, (0,), 1), *timing]
    return timing + [
        cell for phase in GRID.phases() for cell in every(phase.name, GRID.processes, 1)
    ]


def findings(results: Results) -> Findings:
    """Return the claims and figures; models are made here, of the rows."""
    size, seed = results.campaign.size, results.campaign.seed
    timing = [row for row in results.rows if row.get("part") == times.TIMES]
    observed = [row for row in results.rows if row.get("part") != times.TIMES]
    observations = list(map(samples.sample, observed))
    measured = times.Times.from_rows(timing)
    compared = Comparison.from_samples(observations, size=size, seed=seed)
    runs = f"{len(observations)}, of {compared.runs} runs on an emulated file system"
    return findings_of(
        "detection",
        claims=claims.claims(compared, measured),
        figures=claims.figures(compared, measured),
        shipped="" if size == FULL else "; it comes with the package",
        provenance=(
            ("observations", runs),
            ("training", "70% of those with requests of 32 and 256 KiB; 30% to test"),
            ("validation", "requests of 64 and 128 KiB, never used in training"),
            ("cross-validation", f"{compared.folds} folds, forests of {compared.trees} trees"),
            ("Tables 3.6 and 3.7", "are of windows chosen by pattern: the study of tuning"),
        ),
    )


def run_cell(cell: Cell, *, size: Size, seed: int) -> list[dict[str, Value]]:
    """Return the rows of a cell: times, or observations."""
    if cell.scenario == times.TIMES:
        return list(times.measure(size, seed))
    return observe(cell, grid=GRID, seed=seed)


def observe(cell: Cell, *, grid: pattern_survey.Grid, seed: int) -> list[dict[str, Value]]:
    """Return the observations of a cell: those that are shipped, or taken now."""
    if cell.scenario == SHIPPED:
        return [one.row for one in samples.shipped()]
    matching = [
        one
        for one in pattern_survey.cells(grid, seed)
        if (one.phase, one.processes) == (cell.scenario, int(cell.x))
    ]
    with (
        interruptible(),
        in_memory() as root,
        private_state() as state,
        pattern_survey.PatternRuns(
            grid, root=root, state=state, emulate=pattern_survey.EMULATED_STORAGE, seed=seed
        ) as survey,
    ):
        return [sample.row for one in matching for sample in survey.samples(one)]


STUDY = Study(
    name="detection",
    title="Access pattern detection at run time (Bez, thesis, Ch. 3): Tables 3.2-3.5, measured",
    version=VERSION,
    cells=cells_of,
    run_cell=lambda size, seed: partial(run_cell, size=size, seed=seed),
    findings=findings,
    alone=True,
)
