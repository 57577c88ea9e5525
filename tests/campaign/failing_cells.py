"""Cells that go wrong; in a module of their own because worker processes import them by name."""

import os
import time
from pathlib import Path
from typing import Any

from penstock.campaign.cells import Cell
from penstock.errors import InputError


def fails(cell: Cell, *, at: int) -> list[dict[str, Any]]:
    if cell.workload == at:
        raise InputError("no such luck")
    return [{"scenario": cell.scenario, "x": cell.x, "workload": cell.workload, "policy": "a"}]


def dies(cell: Cell) -> list[dict[str, Any]]:
    os._exit(1)


def dies_once(cell: Cell, *, mark: Path) -> list[dict[str, Any]]:
    """End the process that runs the second cell, the first time that one does."""
    if cell.workload == 1 and not mark.exists():
        mark.touch()
        os._exit(1)
    return fails(cell, at=-1)


def waits(cell: Cell, *, directory: Path, free: int) -> list[dict[str, Any]]:
    """Wait for the file `go`, all but the first `free` cells."""
    (directory / f"began-{cell.workload}").touch()
    until = time.monotonic() + 60
    while cell.workload >= free and not (directory / "go").exists():
        if time.monotonic() > until:
            raise TimeoutError("nobody says go")
        time.sleep(0.01)
    return fails(cell, at=-1)


def where(cell: Cell) -> list[dict[str, Any]]:
    """Tell who ran the cell."""
    return [{**row, "process": os.getpid()} for row in fails(cell, at=-1)]
