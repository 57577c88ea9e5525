"""The controller's database: job families, jobs, totals (docs/formats/store.md)."""

from penstock.live.store.database import StoreError
from penstock.live.store.rows import (
    EndedJob,
    Families,
    Family,
    Knowledge,
    Recalled,
    RunningJob,
    Totals,
)
from penstock.live.store.store import Changes, Memory, Store
from penstock.live.store.write_behind import Keeper

__all__ = [
    "Changes",
    "EndedJob",
    "Families",
    "Family",
    "Keeper",
    "Knowledge",
    "Memory",
    "Recalled",
    "RunningJob",
    "Store",
    "StoreError",
    "Totals",
]
