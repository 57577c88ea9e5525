"""ARCHER's benchio runs (hpc-uk archer-benchmarks, GPL-3 results: read where they are)."""

from pathlib import Path

import pytest

from penstock.learn.write_models import machine
from penstock.learn.write_models.sources import archer
from penstock.learn.write_models.table import Table

FILE = Path(__file__).parents[4] / "shared/data/archer-benchio/benchio_write_reps.csv"


def table(*, by_job: bool = False) -> Table:
    """Return its samples, tagged with the library that wrote; skip where the file is absent.

    A sample has all runs with the same parameters, as the paper has it, or those of one job.
    """
    if not FILE.exists():
        pytest.skip("the measured data are not beside this checkout (../shared/data)")
    found = archer.samples(FILE.read_text(), FILE.name, by_job=by_job)
    return Table.of(machine.load(archer.MACHINE), found, [one.source for one in found])
