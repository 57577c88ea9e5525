"""ARCHER's benchio runs (hpc-uk archer-benchmarks)."""

from pathlib import Path

import published_data

from penstock.learn.write_models import machine
from penstock.learn.write_models.dataset import Dataset
from penstock.learn.write_models.samples import Sample
from penstock.learn.write_models.sources import archer


def samples(*, by_job: bool, full: bool) -> tuple[Sample, ...]:
    """Return its samples.

    A sample has all runs with the same parameters, as the paper has it, or those of one job.
    """
    file = published_data.path("archer-jobs.csv", full=full)
    text = file.read_text() if full else upstream(file)
    return archer.samples(text, file.name, by_job=by_job)


def upstream(table: Path) -> str:
    """Return the table of jobs as upstream has it: one row per repetition."""
    lines = ["run_timestamp,system,nprocs,local_array_edge,api,stripe_layout,time_s"]
    for line in table.read_text().splitlines()[1:]:
        parameters, times = line.rsplit(",", 1)
        lines += [f"{parameters},{seconds}" for seconds in times.split()]
    return "\n".join(lines)


def table(*, by_job: bool = False, full: bool) -> Dataset:
    """Return them as a table, tagged with library and stripes."""
    rows = samples(by_job=by_job, full=full)
    return Dataset.from_samples(machine.load(archer.MACHINE), rows, list(map(archer.tag, rows)))


def large(nodes: int, *, full: bool) -> list[Sample]:
    """Return the jobs of more nodes."""
    return [one for one in samples(by_job=True, full=full) if one.write.nodes > nodes]
