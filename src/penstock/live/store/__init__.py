"""What a controller keeps across restarts: families, jobs, totals (docs/formats/store.md)."""

from penstock.learn.knowledge import Knowledge
from penstock.live.store.database import StoreError
from penstock.live.store.rows import (
    Families,
    Family,
    RecalledKnowledge,
    Totals,
)
from penstock.live.store.store import Changes, Memory, Store
from penstock.live.store.write_behind import Limits, WriteBehind

__all__ = [
    "Changes",
    "Families",
    "Family",
    "Knowledge",
    "Limits",
    "Memory",
    "RecalledKnowledge",
    "Store",
    "StoreError",
    "Totals",
    "WriteBehind",
]
