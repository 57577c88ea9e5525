"""What was measured by others: ARCHER's benchio results and TOKIO's year, where they are at hand.

Neither comes with penstock. PENSTOCK_DATA names a directory with archer-benchio/*.csv and
tokio/*.csv.gz (docs/formats/samples.md has where they are from); without it these claims are left
out.
"""

import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from penstock.campaign.cells import Cell
from penstock.campaign.journal import Value
from penstock.errors import InputError
from penstock.learn.write_models import evaluation, interference, training
from penstock.learn.write_models.dataset import Dataset
from penstock.learn.write_models.machine import load
from penstock.learn.write_models.samples import Sample
from penstock.learn.write_models.sources import archer

WHERE = "PENSTOCK_DATA"
ARCHER, TOKIO = "archer", "tokio"
SOURCES = (ARCHER, TOKIO)
SYSTEMS = ("cori", "mira")
LARGEST = 1536
"""Largest number of processes to train models of ARCHER with; larger writes test them."""
KINDS = {"identical runs": False, "jobs": True}
"""What a sample has: all runs of a configuration, as in the paper, or those of a job."""
FLOOR = "floor"
TAGS: Mapping[str, Callable[[Sample], str]] = {
    "library and stripes": archer.tag,
    "library": lambda sample: sample.source,
}
"""The first is ours. The five may have either: what is better for them counts."""


def cells() -> Iterator[Cell]:
    """Yield the cells of the data at hand."""
    if not os.environ.get(WHERE):
        return
    for what in (*training.TECHNIQUES, FLOOR):
        yield Cell(scenario=f"{ARCHER} {what}", x=0.0, workload=0)
    for system in SYSTEMS:
        yield Cell(scenario=f"{TOKIO} {system}", x=0.0, workload=0)


def work(source: str, what: str, seed: int) -> list[dict[str, Value]]:
    """Return the rows of a cell."""
    if source == ARCHER:
        return [_floor()] if what == FLOOR else list(_archer(what, seed))
    return [_tokio(what, seed)]


def _file(pattern: str) -> Path:
    folder = Path(os.environ.get(WHERE, ""))
    files: Sequence[Path] = sorted(folder.glob(pattern))
    if len(files) != 1:
        raise InputError(f"{WHERE}: {len(files)} files are {folder / pattern}; there should be one")
    return files[0]


def _tokio(system: str, seed: int) -> dict[str, Value]:
    """Return what is known of a run's bandwidth from the load before it, and during it."""
    file = _file(f"tokio/{system}-*.csv.gz")
    runs = [run for run in interference.read(file) if run.operation == "write"]
    columns = sorted({name for run in runs for name in run.load})
    before = [name for name in columns if not name.startswith(interference.DURING)]
    known, explained = (interference.errors(runs, some, seed=seed) for some in (before, columns))
    return {
        "machine": TOKIO,
        "system": system,
        "runs": known.tested,
        "floor": known.floor,
        "usual": known.usual,
        "known": known.model,
        "explained": explained.model,
    }


def _samples(kind: str) -> Sequence[Sample]:
    file = _file("archer-benchio/*.csv")
    return archer.samples(file.read_text(encoding="utf-8"), str(file), by_job=KINDS[kind])


def _floor() -> dict[str, Value]:
    """Return how well the larger jobs tell others of the same configuration."""
    large = [one for one in _samples("jobs") if one.write.bursts > LARGEST]
    repeatability = evaluation.repeatability(large)
    return {
        "machine": ARCHER,
        "model": FLOOR,
        "own": repeatability.own,
        "others": repeatability.others,
        "jobs": repeatability.samples,
    }


def _archer(technique: str, seed: int) -> Iterator[dict[str, Value]]:
    """Yield the predictions for each larger write, by models of at most 1,536 processes."""
    ours = technique == training.EXTRAPOLATING
    for kind, name in itertools.product(KINDS, list(TAGS)[:1] if ours else TAGS):
        samples = _samples(kind)
        table = Dataset.from_samples(load(archer.MACHINE), samples, list(map(TAGS[name], samples)))
        small = np.array([write.bursts <= LARGEST for write in table.writes])
        learned = training.train(table.select(small), technique, seed=seed)
        large = table.select(~small).long_enough()
        for write, tag, seconds in zip(large.writes, large.tags, large.seconds, strict=True):
            prediction = learned.predict(write, tag=tag)
            yield {
                "machine": ARCHER,
                "model": technique,
                "samples": kind,
                "tags": name,
                "nodes": write.nodes,
                "observed": float(seconds),
                "seconds": prediction.seconds,
                "low": prediction.low,
                "high": prediction.high,
                "inside": math.exp(learned.model.interval.half),
            }
