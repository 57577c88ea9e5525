"""Chapter 3 of J. L. Bez's thesis: access patterns told at run time from I/O nodes' metrics.

The observations are ours: real I/O nodes, real processes, on an emulated file system. In small the
study learns from those that come with the package; --full takes them again.
"""

from functools import partial

from penstock.campaign.cells import Cell, Results
from penstock.campaign.journal import Value
from penstock.campaign.sizes import FULL, Size
from penstock.learn.detection import samples
from penstock.live.measure import pattern_survey
from penstock.live.measure.scratch import in_memory, interruptible, private_state
from penstock.report.findings import Basis, Findings
from penstock.studies.detection import claims, figures
from penstock.studies.detection.comparison import Comparison
from penstock.studies.study import Study

VERSION = 1
SHIPPED = "shipped"
GRID = pattern_survey.Grid()


def cells_of(size: Size) -> list[Cell]:
    """Return what is to be measured; in small nothing is."""
    cells = [Cell(scenario=SHIPPED, x=0, workload=0)]
    if size == FULL:
        cells = [
            Cell(scenario=phase.name, x=float(ranks), workload=0)
            for phase in GRID.phases()
            for ranks in GRID.processes
        ]
    return cells


def findings(results: Results) -> Findings:
    """Return the claims and figures; models are made here, of the rows."""
    observations = [samples.sample(row) for row in results.rows]
    compared = Comparison.from_samples(
        observations, size=results.campaign.size, seed=results.campaign.seed
    )
    return Findings(
        title="Access patterns, told at run time",
        summary="J. L. Bez's thesis, Chapter 3, again: decision tree, random forest and neural "
        "network tell three access patterns from what I/O nodes see. Observations were taken "
        "by our own I/O nodes, of real processes, on an emulated file system; the thesis' on "
        "Grid'5000. CART stands in for C5.0 and scikit-learn's perceptron (Adam) for Keras "
        "(RMSProp). Figures held against the thesis' are of runs with several clients an I/O "
        "node, as all of its own were; with one client, a file of its own and a part of a "
        "shared one are the same requests, and the model says so.",
        claims=claims.claims(compared),
        figures=figures.figures(compared),
        basis=Basis(
            emulated="the file system behind the I/O nodes",
            measured="what our own I/O nodes saw of real processes"
            + ("" if results.campaign.size == FULL else "; it comes with the package"),
        ),
        provenance=(
            (
                "observations",
                f"{len(observations)}, of {compared.runs} runs on an emulated file system",
            ),
            ("training", "70% of those with requests of 32 and 256 KiB; 30% to test"),
            ("validation", "requests of 64 and 128 KiB, never used in training"),
            ("cross-validation", f"{compared.folds} folds, forests of {compared.trees} trees"),
            ("Tables 3.6 and 3.7", "are of windows chosen by pattern: the study of tuning"),
        ),
    )


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
    run_cell=lambda _, seed: partial(observe, grid=GRID, seed=seed),
    findings=findings,
    alone=True,
)
