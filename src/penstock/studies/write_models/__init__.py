"""Paper write-models: what a write costs, by regression on the load of its path's stages.

The paper's samples are not public. Its machines are simulated (docs/formats/machines.md), which
every caption says; ARCHER's and TOKIO's measurements are added where they are at hand.
"""

from collections.abc import Mapping
from functools import partial

from penstock.campaign.cells import Results
from penstock.report.findings import Basis, Findings
from penstock.studies.study import Study
from penstock.studies.write_models import claims, comparison, figures, measured, work
from penstock.studies.write_models.sets import SIZES, Subsets

VERSION = 2
SEARCHED: Mapping[Subsets, str] = {
    "all": "255 subsets of eight scales",
    "neighbours": "the 36 without gaps",
    "long": "the 6 without gaps of six scales and more",
}


def findings(results: Results) -> Findings:
    """Return the claims and figures; chosen models are fitted again here."""
    size = SIZES[results.campaign.size]
    compared = comparison.compare(results.rows, size, results.campaign.seed)
    forests = SEARCHED[size.forests]
    absent = f"{measured.WHERE} names no directory with ARCHER's and TOKIO's results"
    at_hand = any(row["machine"] in measured.SOURCES for row in results.rows)
    return Findings(
        title="What a write costs",
        summary="B. Xie et al., Interpreting Write Performance of Supercomputer I/O Systems "
        "with Regression Models, again. Cetus and Titan are simulated write paths, noise fixed "
        "by the paper's Figure 1 and its shares of unconverged samples alone "
        "(docs/formats/machines.md has the rule): nothing here was measured on them. Models "
        "are made of 1 to 128 nodes and asked for 200 to 2,000.",
        claims=claims.claims(compared, results.rows),
        figures=figures.figures(compared),
        basis=Basis(
            simulated="the write paths of Cetus and Titan, and all samples of them",
            measured="ARCHER's and TOKIO's results" if at_hand else f"nothing: {absent}",
        ),
        provenance=(
            (
                "training",
                ", ".join(f"{one.machine} {one.trained}" for one in compared)
                + f" converged samples of 5 s and more ({size.part:g} of the paper's number), "
                "80% trained with and 20% validated with, within each scale",
            ),
            (
                "tests",
                "; ".join(
                    f"{one.machine} "
                    + ", ".join(f"{len(some)} {name}" for name, some in one.tests.items())
                    for one in compared
                ),
            ),
            (
                "search",
                f"{SEARCHED[size.others]} x five techniques, by mean square error"
                + ("" if size.forests == size.others else f"; forests: {forests}"),
            ),
            (
                "rules",
                "what counts as holding was written after a first run with seed 1, except for "
                "advice by our model and by the lasso, intervals of runs and of gains",
            ),
            ("adaptation", f"{size.adapted} converged test samples a machine"),
            (
                "measured",
                "ARCHER and TOKIO" if at_hand else f"not at hand: {absent}",
            ),
        ),
    )


STUDY = Study(
    name="write-models",
    title="Write performance by regression (Xie et al.): Tables VI-VII, Figs. 1, 4-7, simulated",
    version=VERSION,
    cells=lambda _: work.cells(),
    run_cell=lambda size, seed: partial(work.work, size=SIZES[size], seed=seed),
    findings=findings,
)
