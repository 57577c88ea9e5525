"""The controller's database: job families, jobs, totals (docs/formats/store.md)."""

from penstock.live.store.database import StoreError
from penstock.live.store.rows import (
    Families,
    Family,
    Knowledge,
    Recalled,
    Totals,
)
from penstock.live.store.store import Changes, Memory, Store
from penstock.live.store.write_behind import WriteBehind

__all__ = [
    "Changes",
    "Families",
    "Family",
    "Knowledge",
    "Memory",
    "Recalled",
    "Store",
    "StoreError",
    "Totals",
    "WriteBehind",
]
