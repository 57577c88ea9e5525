"""Data that others measured: tables of their figures in tests/data/published, or the full sets."""

import os
from pathlib import Path

import pytest

TABLES = Path(__file__).parent / "data" / "published"
SETS = {
    "archer-jobs.csv": "archer-benchio/benchio_write_reps.csv",
    "mn4-means.csv": "mn4-forwarding/curves.csv",
    "tokio-cori.csv": "tokio/cori-summaries_2017-02-14-2018-02-15.csv.gz",
    "tokio-mira.csv": "tokio/mira-summaries_2017-02-14_2018-02-15.csv.gz",
}
"""The file of the full set that a table was made of."""
FULL = os.environ.get("PENSTOCK_DATA")
either = pytest.mark.parametrize("full", [False, True] if FULL else [False])
"""Run a test with the tables, and with the full sets if PENSTOCK_DATA names their folder."""


def path(table: str, *, full: bool) -> Path:
    """Return the path of a table, or of the set that it was made of."""
    return Path(FULL or "", SETS[table]) if full else TABLES / table
