"""Studies of one cell, one of which fails as long as a file is there."""

import os
from functools import partial
from pathlib import Path

from penstock.campaign.cells import Cell, Results
from penstock.report.findings import Basis, Claim, Findings
from penstock.studies.study import Study

FAILS = "PENSTOCK_TEST_FAILS"


def work(cell: Cell, *, name: str) -> list[dict[str, float | str | None]]:
    if name == "broken" and Path(os.environ[FAILS]).exists():
        raise ZeroDivisionError("by <nothing>")
    return [{"scenario": cell.scenario, "x": cell.x, "workload": 0, "policy": "p", "value": 1.0}]


def study(name: str, *, alone: bool = True) -> Study:
    def findings(results: Results) -> Findings:
        claim = Claim(
            claim=f"{name} has a row",
            by="packs",
            paper="1",
            ours=str(len(results.rows)),
            holds=True,
            why="Rule: equal.",
        )
        basis = Basis(simulated="a number")
        return Findings(
            title=f"The study {name}", summary="Simulated.", claims=[claim], basis=basis
        )

    return Study(
        name=name,
        title=f"The study {name}",
        version=1,
        cells=lambda _: [Cell(scenario="one", x=0.0, workload=0)],
        run_cell=lambda _, __: partial(work, name=name),
        findings=findings,
        alone=alone,
    )


WHOLE, BROKEN, LAST = (study(name) for name in ("whole", "broken", "last"))
REMOTE, FAR = (study(name, alone=False) for name in ("remote", "far"))
