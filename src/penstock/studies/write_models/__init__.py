"""Paper write-models: what a write costs, by regression on the load of its path's stages.

The paper's samples are not public. Its machines are simulated (docs/formats/machines.md), which
every caption says; ARCHER's and TOKIO's measurements are added where they are at hand.
"""

from collections.abc import Mapping
from functools import partial

from penstock.campaign.cells import Results
from penstock.report.findings import Findings
from penstock.studies.study import Study
from penstock.studies.texts import findings_of
from penstock.studies.write_models import cells, claims, comparison, figures, measured
from penstock.studies.write_models.cells import SIZES, Subsets

VERSION = 4
SEARCHED: Mapping[Subsets, str] = {
    "all": "255 subsets of eight scales",
    "neighbours": "the 36 without gaps",
    "long": "the 6 without gaps of six scales and more",
}


def findings(results: Results) -> Findings:
    """Return the claims and figures; chosen models are fitted again here."""
    size = SIZES[results.campaign.size]
    compared = comparison.compare(results.rows, size, results.campaign.seed)
    absent = f"{measured.WHERE} names no directory with ARCHER's and TOKIO's results"
    at_hand = any(row["machine"] in measured.SOURCES for row in results.rows)
    trained = ", ".join(f"{one.machine} {one.trained}" for one in compared)
    tests = "; ".join(
        f"{one.machine} " + ", ".join(f"{len(some)} {name}" for name, some in one.tests.items())
        for one in compared
    )
    forests = f"; forests: {SEARCHED[size.forests]}" if size.forests != size.others else ""
    return findings_of(
        "write-models",
        claims=claims.claims(compared, results.rows),
        figures=figures.figures(compared),
        measured="ARCHER's and TOKIO's results" if at_hand else f"nothing: {absent}",
        provenance=(
            (
                "training",
                f"{trained} converged samples of 5 s and more ({size.part:g} of the paper's "
                "number), 80% trained with and 20% validated with, within each scale",
            ),
            ("tests", tests),
            ("search", f"{SEARCHED[size.others]} x five techniques, by mean square error{forests}"),
            (
                "rules",
                "what counts as holding was written after a first run with seed 1, except for "
                "advice by our model and by the lasso, intervals of runs and of gains",
            ),
            ("adaptation", f"{size.adapted} converged test samples a machine"),
            ("measured", "ARCHER and TOKIO" if at_hand else f"not at hand: {absent}"),
        ),
    )


STUDY = Study(
    name="write-models",
    title="Write performance by regression (Xie et al.): Tables VI-VII, Figs. 1, 4-7, simulated",
    version=VERSION,
    cells=lambda size: list(cells.cells(SIZES[size])),
    run_cell=lambda size, seed: partial(cells.work, size=SIZES[size], seed=seed),
    findings=findings,
)
