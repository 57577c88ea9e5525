"""ARCHER's benchio runs (hpc-uk archer-benchmarks, GPL-3 results: read where they are)."""

from pathlib import Path

import pytest

from penstock.learn.write_models import machine
from penstock.learn.write_models.dataset import Dataset
from penstock.learn.write_models.samples import Sample
from penstock.learn.write_models.sources import archer

FILE = Path(__file__).parents[4] / "shared/data/archer-benchio/benchio_write_reps.csv"


def samples(*, by_job: bool) -> tuple[Sample, ...]:
    """Return its samples; skip where the file is absent.

    A sample has all runs with the same parameters, as the paper has it, or those of one job.
    """
    if not FILE.exists():
        pytest.skip("the measured data are not beside this checkout (../shared/data)")
    return archer.samples(FILE.read_text(), FILE.name, by_job=by_job)


def table(*, by_job: bool = False) -> Dataset:
    """Return them as a table, tagged with library and stripes."""
    found = samples(by_job=by_job)
    return Dataset.from_samples(machine.load(archer.MACHINE), found, list(map(archer.tag, found)))


def large(nodes: int) -> list[Sample]:
    """Return the jobs of more nodes."""
    return [one for one in samples(by_job=True) if one.write.nodes > nodes]
