"""The study's samples, all simulated: made anew by whoever needs them, always the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from penstock.learn.write_models import templates
from penstock.learn.write_models.machine import Machine, load
from penstock.learn.write_models.samples import Sample
from penstock.learn.write_models.search import Search
from penstock.learn.write_models.table import Table
from penstock.sim import write_samples

MACHINES = ("cetus", "titan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of the paper's evaluation is done."""

    part: float
    """Of its training samples; test sets are always whole."""
    adapted: int
    """Test samples of each machine that are adapted by the chosen lasso."""
    advised: int
    """And by our model."""
    variations: int
    """Writes a scale whose runs are compared."""
    forests: Literal["all", "neighbours"]
    """Forests are the cost of the search: of all subsets of scales, or those without gaps."""


SIZES: Mapping[str, Size] = {
    "fast": Size(part=0.25, adapted=60, advised=30, variations=6, forests="neighbours"),
    "full": Size(part=1.0, adapted=400, advised=100, variations=20, forests="all"),
}


@lru_cache(maxsize=4)
def searching(name: str, part: float, seed: int) -> Search:
    """Return the training samples of a machine, all converged, and the search over them."""
    machine = load(name)
    plan = write_samples.plan(machine, part=part)
    found = [
        sample
        for scale in templates.TRAINED
        for sample in _made(machine, scale, plan, seed)
        if sample.converged(write_samples.RULE)
    ]
    return Search(Table.of(machine, found), seed=seed)


@lru_cache(maxsize=4)
def tests(name: str, seed: int) -> Mapping[str, Sequence[Sample]]:
    """Return the test sets of a machine: small, medium, large and unconverged."""
    machine = load(name)
    plan = write_samples.plan(machine)
    found: dict[str, list[Sample]] = {set_: [] for set_ in (*templates.TESTED, "unconverged")}
    for set_, scales in templates.TESTED.items():
        for scale in scales:
            for sample in _made(machine, scale, plan, seed):
                kept = set_ if sample.converged(write_samples.RULE) else "unconverged"
                found[kept].append(sample)
    return found


def _made(machine: Machine, scale: int, plan: write_samples.Plan, seed: int) -> list[Sample]:
    return write_samples.samples(machine, scale, plan.converged[scale], runs=plan.runs, seed=seed)
