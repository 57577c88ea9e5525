"""The controller's memory, which survives it: job families, jobs, totals (docs/store.md)."""

from penstock.live.store.keeper import Keeper
from penstock.live.store.opening import StoreError
from penstock.live.store.records import (
    EndedJob,
    Families,
    Family,
    Knowledge,
    Recalled,
    RunningJob,
    Totals,
)
from penstock.live.store.store import Changes, Memory, Store

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
