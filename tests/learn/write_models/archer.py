"""ARCHER's benchio runs (hpc-uk archer-benchmarks, GPL-3 results: read where they are)."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from penstock.learn.write_models import machine
from penstock.learn.write_models.samples import Sample
from penstock.learn.write_models.table import Table
from penstock.model.write import Write

FILE = Path(__file__).parents[4] / "shared/data/archer-benchio/benchio_write_reps.csv"
STRIPES = {"striped": 48, "defstriped": 4, "unstriped": 1}
SYSTEMS = ("ARCHER", "ARCHER_baseline")
"""One machine at two times; the others of the file are other machines."""
CORES = 24


def table(*, by_job: bool = False) -> Table:
    """Return its samples, tagged with the library that wrote; skip where the file is absent.

    A sample has all runs with the same parameters, as the paper has it, or those of one job.
    """
    if not FILE.exists():
        pytest.skip("the measured data are not beside this checkout (../shared/data)")
    runs: dict[tuple[str, ...], list[float]] = defaultdict(list)
    columns = ["api", "stripe_layout", "local_array_edge", "nprocs"]
    with FILE.open(newline="") as lines:
        for row in csv.DictReader(lines):
            if row["system"] in SYSTEMS:
                job = ["source_path", "run_timestamp"] if by_job else []
                runs[tuple(row[c] for c in columns + job)].append(float(row["time_s"]))
    samples = [
        Sample(machine="archer", source="archer-benchio", write=_write(*key[1:4]), times=tuple(t))
        for key, t in runs.items()
    ]
    return Table.of(machine.load("archer"), samples, [key[0] for key in runs])


def _write(layout: str, edge: str, processes: str) -> Write:
    count = int(processes)
    return Write(
        nodes=-(-count // CORES),
        cores=min(CORES, count),
        burst=8.0 * int(edge) ** 3,
        shared=True,
        stripe_count=STRIPES[layout],
    )
