"""How fast the search for models of writes is, and a prediction.

    python benchmarks/write_models.py [--jobs N] [--samples N] [--out DIR]

The search: 255 subsets of eight scales x the paper's five techniques, every option of the grid
(penstock.learn.write_models.regressors.GRIDS), on 4,000 made-up samples of Titan. It runs as a
campaign and may be interrupted: with the same --out it continues. Then the time of one prediction,
with features and interval: the median over writes, for every kind of model. Each line ends with
its bar and whether it is met.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from functools import cache, partial
from pathlib import Path

import numpy as np

from penstock.campaign.cells import Campaign, run
from penstock.campaign.cells import Cell as CampaignCell
from penstock.campaign.journal import Value
from penstock.learn.write_models import machine, regressors, training
from penstock.learn.write_models.dataset import Dataset
from penstock.learn.write_models.parameters import parameters
from penstock.learn.write_models.samples import Sample
from penstock.learn.write_models.training import Cell, Search
from penstock.model.write import Write

SEARCH_BAR, PREDICTION_BAR = 15 * 60.0, 1e-3
SCALES = (1, 2, 4, 8, 16, 32, 64, 128)
SEED = 1


@cache
def samples(count: int) -> Dataset:
    """Return writes of Table V's kind with times of a simple law: only their number matters."""
    titan, rng = machine.load("titan"), np.random.default_rng(SEED)
    drawn: list[Sample] = []
    while len(drawn) < count:
        write = Write(
            nodes=int(rng.choice(SCALES)),
            cores=int(rng.integers(1, 17)),
            burst=float(2 ** rng.uniform(20, 33)),
            stripe_count=int(rng.integers(1, 65)),
        )
        terms = parameters(titan, write)
        seconds = 0.5 + terms["s_ost"] / 4e8 + terms["m"] * terms["n"] * terms["K"] / 2e10
        times = tuple(seconds * rng.lognormal(0, 0.2, 5))
        if seconds >= 6:
            drawn.append(Sample(machine="titan", source="made up", write=write, times=times))
    return Dataset.from_samples(titan, drawn)


@cache
def search(count: int) -> Search:
    return Search(samples(count), seed=SEED)


def work(count: int, cell: CampaignCell) -> list[dict[str, Value]]:
    mask = int(cell.x)
    some = tuple(scale for k, scale in enumerate(SCALES) if mask >> k & 1)
    result = search(count).evaluate(Cell(technique=cell.scenario, scales=some))
    return [
        {"technique": cell.scenario, "mask": mask, "option": result.option, "mse": result.error}
    ]


def searched(count: int, jobs: int | None, out: Path) -> None:
    cells = [
        CampaignCell(scenario=technique, x=float(mask), workload=0)
        for technique in regressors.PAPER_TECHNIQUES
        for mask in range(1, 2 ** len(SCALES))
    ]
    whole = Campaign(
        study=f"write-models-benchmark-{count}",
        version=1,
        size="full",
        seed=SEED,
        cells=cells,
        work=partial(work, count),
    )
    began = time.perf_counter()
    results = run(whole, out, cores=jobs)
    taken = time.perf_counter() - began
    for technique in regressors.PAPER_TECHNIQUES:
        spent = sum(s for (name, _, _), s in results.seconds.items() if name == technique)
        print(f"{technique}: {spent:.1f} s of a core")
    verdict = "met" if taken <= SEARCH_BAR else "NOT MET"
    print(f"search, {len(cells)} cells on {count} samples: {taken:.0f} s ({verdict}: <= 900 s)")


def time_predictions(count: int) -> None:
    part = samples(count).select(np.arange(count) < 600)
    for technique in ("extrapolating", "linear", "forest"):
        if technique == "extrapolating":
            learned = training.train_extrapolation(part, seed=SEED)
        else:
            small = Search(part, seed=SEED)
            learned = training.train_regression(small, small.evaluate(small.base(technique)))
        taken = []
        for write in part.writes:
            began = time.perf_counter()
            learned.predict(write)
            taken.append(time.perf_counter() - began)
        one = statistics.median(taken)
        verdict = "met" if one <= PREDICTION_BAR else "NOT MET"
        print(f"a prediction, {technique}: {1e6 * one:.0f} us ({verdict}: <= 1000 us)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    time_predictions(given.samples)
    with tempfile.TemporaryDirectory() as scratch:
        out = given.out or Path(scratch)
        out.mkdir(parents=True, exist_ok=True)
        searched(given.samples, given.jobs, out)


if __name__ == "__main__":
    main()
