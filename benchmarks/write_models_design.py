"""Our model of writes on machines other than ARCHER, where its design was chosen.

Models are trained up to a number of processes and evaluated on up to 16 times as many, as for
ARCHER: every split on which designs were compared. ARCHER's own runs of more than 1,536 processes
are not read.

    python benchmarks/write_models_design.py $PENSTOCK_DATA/archer-benchio/benchio_write_reps.csv
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from penstock.learn.write_models import machine, training
from penstock.learn.write_models.dataset import FEWEST, Dataset
from penstock.learn.write_models.samples import Sample
from penstock.learn.write_models.sources import archer

SPLITS = {
    "archer": (("ARCHER", "ARCHER_baseline"), 24, 48, (96, 192, 384)),
    "cirrus": (("Cirrus",), 36, 40, (288, 576)),
    "csd3": (("CSD3Skylake", "CSD3Skylake-unpatched"), 32, 24, (256, 512)),
}
"""Systems, cores per node, targets (assumed for Cirrus and CSD3), processes to train with."""
MOST = 1536
FURTHER = 16


def table(content: str, name: str, *, by_job: bool) -> Dataset:
    """Return a machine's samples, tagged with library, stripes and, on CSD3, the system."""
    systems, cores, targets, _ = SPLITS[name]
    known = machine.load(archer.MACHINE)
    striping = msgspec.structs.replace(known.striping, targets=targets)
    known = msgspec.structs.replace(known, cores=cores, striping=striping)
    stripes = {**archer.STRIPES, "striped": targets}
    if name != "archer":
        stripes["defstriped"] = 1
    samples: list[Sample] = []
    tags: list[str] = []
    for some in [systems] if name == "archer" else [(system,) for system in systems]:
        read = archer.samples(
            content, name, systems=some, by_job=by_job, cores=cores, stripes=stripes
        )
        samples += read
        tags += [f"{archer.tag(one)}, {some[0]}" for one in read]
    return Dataset.from_samples(known, samples, tags)


def splits(content: str, *, by_job: bool) -> Iterator[tuple[str, Dataset, Dataset]]:
    """Yield the name of a split, its training samples and its test samples."""
    for name, (*_, limits) in SPLITS.items():
        whole = table(content, name, by_job=by_job)
        processes = np.array([write.bursts for write in whole.writes])
        for limit in limits:
            most = min(FURTHER * limit, MOST) if name == "archer" else FURTHER * limit
            selected = (processes > limit) & (processes <= most) & (whole.seconds >= 5)
            yield f"{name} {limit}", whole.select(processes <= limit), whole.select(selected)


def main() -> None:
    """Print the median error and how often intervals hold, for every split and technique."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--techniques", nargs="+", default=["extrapolating", "lasso"])
    given = parser.parse_args()
    content = given.results.read_text(encoding="utf-8")
    for by_job in (True, False):
        for name, small, large in splits(content, by_job=by_job):
            for technique in given.techniques:
                kept = small if technique == training.EXTRAPOLATING else small.long_enough()
                if len(kept) < FEWEST:
                    continue
                learned = training.train(small, technique, seed=1)
                pairs = zip(large.writes, large.tags, strict=True)
                guesses = [learned.predict(write, tag=tag) for write, tag in pairs]
                errors = [
                    abs(p.seconds / t - 1) for p, t in zip(guesses, large.seconds, strict=True)
                ]
                held = [p.low <= t <= p.high for p, t in zip(guesses, large.seconds, strict=True)]
                print(
                    f"{'jobs' if by_job else 'identical runs'}, {name}: {len(small)} trained, "
                    f"{len(large)} asked, {technique} {np.median(errors):.3f}, held "
                    f"{np.mean(held):.1%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
