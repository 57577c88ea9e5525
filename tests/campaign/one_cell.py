"""Studies of one cell, one of which fails as long as a file is there."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from penstock.campaign.cells import Campaign, Cell, Results
from penstock.campaign.sizes import Size
from penstock.report.findings import Basis, Claim, Findings

FAILS = "PENSTOCK_TEST_FAILS"


def work(cell: Cell, *, name: str) -> list[dict[str, float | str | None]]:
    if name == "broken" and Path(os.environ[FAILS]).exists():
        raise ZeroDivisionError("by <nothing>")
    return [{"scenario": cell.scenario, "x": cell.x, "workload": 0, "policy": "p", "value": 1.0}]


class OneCell:
    def __init__(self, name: str, *, alone: bool = True) -> None:
        self.name = name
        self.alone = alone
        self.title = f"The study {name}"

    def campaign(self, *, size: Size, seed: int) -> Campaign:
        cells: Sequence[Cell] = [Cell(scenario="one", x=0.0, workload=0)]
        return Campaign(
            study=self.name,
            version=1,
            size=size,
            seed=seed,
            cells=cells,
            work=partial(work, name=self.name),
            alone=self.alone,
        )

    def findings(self, results: Results) -> Findings:
        return Findings(
            title=self.title,
            summary="Simulated.",
            claims=[
                Claim(
                    claim=f"{self.name} has a row",
                    by="packs",
                    paper="1",
                    ours=str(len(results.rows)),
                    holds=True,
                    why="Rule: equal.",
                )
            ],
            basis=Basis(simulated="a number"),
        )


WHOLE, BROKEN, LAST = (OneCell(name) for name in ("whole", "broken", "last"))
AWAY, FAR = (OneCell(name, alone=False) for name in ("away", "far"))
