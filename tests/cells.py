"""Cells that go wrong; in a module of their own because worker processes import them by name."""

import os
from typing import Any

from penstock.errors import InputError
from penstock.studies.campaign import Cell


def fails(cell: Cell, *, at: int) -> list[dict[str, Any]]:
    if cell.workload == at:
        raise InputError("no such luck")
    return [{"scenario": cell.scenario, "x": cell.x, "workload": cell.workload, "policy": "a"}]


def dies(cell: Cell) -> list[dict[str, Any]]:
    os._exit(1)
