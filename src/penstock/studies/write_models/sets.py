"""The study's samples, all simulated, and models of them that several cells need.

Every process that needs them makes them once, and always the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from penstock.campaign.sizes import Size
from penstock.learn.write_models import features, training
from penstock.learn.write_models.dataset import Dataset
from penstock.learn.write_models.machine import Machine, load
from penstock.learn.write_models.model import TrainedModel
from penstock.learn.write_models.regressors import Regressor
from penstock.learn.write_models.samples import Sample
from penstock.learn.write_models.training import Cell, CellResult, Search
from penstock.sim.evaluate import write_samples

Floats = NDArray[np.float64]
MACHINES = ("cetus", "titan")
UNCONVERGED = "unconverged"
Subsets = Literal["all", "neighbours", "long"]
"""All 255 of eight scales, the 36 without gaps, or the 6 of these with six scales and more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """How much of the paper's evaluation is done."""

    part: float
    """Of its training samples."""
    tested: float = 1.0
    """Of its test sets."""
    adapted: int
    """Test samples of each machine that are adapted by the chosen lasso."""
    advised: int
    """And by our model."""
    variations: int
    """Writes a scale whose runs are compared."""
    forests: Subsets
    """Forests are the cost of the search: which subsets of scales they are made of."""
    others: Subsets = "all"
    """And which the other four of the five."""


SIZES: Mapping[Size, Amounts] = {
    "quick": Amounts(
        part=0.02,
        tested=0.05,
        adapted=6,
        advised=3,
        variations=2,
        forests="long",
        others="neighbours",
    ),
    "fast": Amounts(part=0.25, adapted=60, advised=30, variations=6, forests="neighbours"),
    "full": Amounts(part=1.0, adapted=400, advised=100, variations=20, forests="all"),
}


@lru_cache(maxsize=4)
def samples(name: str, part: float, seed: int) -> Sequence[Sample]:
    """Return the training samples of a machine, those that have not converged too."""
    machine = load(name)
    plan = write_samples.plan(machine, part=part)
    return [
        sample
        for scale in write_samples.TRAINING_SCALES
        for sample in _simulate(machine, scale, plan, seed)
    ]


@lru_cache(maxsize=4)
def searching(name: str, part: float, seed: int) -> Search:
    """Return the search over the converged training samples of a machine."""
    converged_samples = [
        one for one in samples(name, part, seed) if one.converged(write_samples.RULE)
    ]
    return Search(Dataset.from_samples(load(name), converged_samples), seed=seed)


@lru_cache(maxsize=4)
def lasso(name: str, part: float, which: Subsets, seed: int) -> CellResult:
    """Return the chosen lasso: the same as from the rows of its cells."""
    search = searching(name, part, seed)
    return search.best(map(search.evaluate, subsets(search, "lasso", which)))["lasso"]


def subsets(search: Search, technique: str, which: Subsets) -> list[Cell]:
    """Return the subsets of scales that a technique is tried with."""
    cells = list(search.cells([technique]))
    if which == "all":
        return cells
    places = {scale: place for place, scale in enumerate(search.scales)}
    # Without gaps: as many scales as places from the first to the last.
    cells = [s for s in cells if places[s.scales[-1]] - places[s.scales[0]] < len(s.scales)]
    least = len(search.scales) - 2 if which == "long" else 1
    return [s for s in cells if len(s.scales) >= least]


@lru_cache(maxsize=4)
def ours(name: str, part: float, seed: int) -> TrainedModel:
    """Return our model: of all samples, as 'penstock write-model train' makes it.

    One that has not converged counts for less in the fit, and for as much as any in the interval of
    one run: leaving out what varies most would make runs look alike.
    """
    return training.train(Dataset.from_samples(load(name), samples(name, part, seed)), seed=seed)


@lru_cache(maxsize=4)
def tests(name: str, part: float, seed: int) -> Mapping[str, Sequence[Sample]]:
    """Return the test sets of a machine: small, medium, large and unconverged."""
    machine = load(name)
    plan = write_samples.plan(machine, part=part)
    by_set: dict[str, list[Sample]] = {
        set_: [] for set_ in (*write_samples.TEST_SCALES, UNCONVERGED)
    }
    for set_, scales in write_samples.TEST_SCALES.items():
        for scale in scales:
            for sample in _simulate(machine, scale, plan, seed):
                place = set_ if sample.converged(write_samples.RULE) else UNCONVERGED
                by_set[place].append(sample)
    return by_set


def _simulate(machine: Machine, scale: int, plan: write_samples.Plan, seed: int) -> list[Sample]:
    return write_samples.samples(machine, scale, plan.converged[scale], runs=plan.runs, seed=seed)


def converged(name: str, part: float, seed: int) -> list[Sample]:
    """Return the converged test samples of a machine."""
    by_set = tests(name, part, seed)
    return [sample for set_ in write_samples.TEST_SCALES for sample in by_set[set_]]


@lru_cache(maxsize=4)
def features_and_seconds(name: str, part: float, seed: int) -> Mapping[str, tuple[Floats, Floats]]:
    """Return the features of each test set's samples, and what they took."""
    machine = load(name)
    return {
        set_: (
            features.matrix(machine, [sample.write for sample in some]),
            np.array([sample.seconds for sample in some]),
        )
        for set_, some in tests(name, part, seed).items()
    }


def missed(model: Regressor, name: str, part: float, seed: int) -> Mapping[str, Floats]:
    """Return by how many seconds a model errs on the samples of each test set."""
    by_set = features_and_seconds(name, part, seed)
    return {set_: model.predict(matrix) - seconds for set_, (matrix, seconds) in by_set.items()}


def squares(errors: Mapping[str, Floats]) -> dict[str, float]:
    """Return mean square errors on all converged test samples, and on the unconverged."""
    converged = np.concatenate([errors[set_] for set_ in write_samples.TEST_SCALES])
    both = {"converged": converged, UNCONVERGED: errors[UNCONVERGED]}
    return {part: float(np.mean(some**2)) for part, some in both.items()}
