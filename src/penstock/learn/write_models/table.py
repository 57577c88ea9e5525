"""Samples as a table: what models are fitted to."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.learn.write_models.arrays import Floats
from penstock.learn.write_models.convergence import Convergence
from penstock.learn.write_models.features import features, row
from penstock.learn.write_models.loads import loads, logarithms
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.parameters import parameters
from penstock.learn.write_models.samples import SHORTEST, Sample, check
from penstock.model.write import Write

Ints = NDArray[np.int64]
FEWEST = 20
"""Samples: fewer are too few to learn from."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """Writes on one machine, each with its tag and its mean seconds.

    A tag is a fact of a write that no parameter has, such as the library that wrote: "" for none.
    """

    machine: Machine
    writes: tuple[Write, ...]
    tags: tuple[str, ...]
    seconds: Floats
    times: tuple[tuple[float, ...], ...]
    """Of each run."""
    sources: tuple[str, ...]
    weights: Floats
    """Of its mean: 1 for one that is known exactly, a half for one that has just converged."""
    features: Floats
    loads: Floats
    """Logarithms, of every stage."""

    @classmethod
    def of(
        cls, machine: Machine, samples: Sequence[Sample], tags: Sequence[str] | None = None
    ) -> "Table":
        """Return the table of samples; InputError for those of another machine."""
        for one in samples:
            check(one, machine)
        given = tuple(tags) if tags is not None else ("",) * len(samples)
        if len(given) != len(samples):
            raise InputError(f"{len(given)} tags for {len(samples)} samples; give one for each")
        found = [parameters(machine, one.write) for one in samples]
        wanted = features(machine)
        return cls(
            machine=machine,
            writes=tuple(one.write for one in samples),
            tags=given,
            seconds=np.array([one.seconds for one in samples], np.float64),
            times=tuple(one.times for one in samples),
            sources=tuple(one.source for one in samples),
            weights=np.array([_weight(one.times) for one in samples], np.float64),
            features=np.array([row(wanted, one) for one in found], np.float64).reshape(
                -1, len(wanted)
            ),
            loads=logarithms(machine, [loads(machine, one) for one in found]),
        )

    def __len__(self) -> int:
        return len(self.writes)

    def where(self, kept: NDArray[np.bool_] | Ints) -> "Table":
        """Return some of its lines."""
        places = np.arange(len(self))[kept]
        return Table(
            machine=self.machine,
            writes=tuple(self.writes[k] for k in places),
            tags=tuple(self.tags[k] for k in places),
            seconds=self.seconds[places],
            times=tuple(self.times[k] for k in places),
            sources=tuple(self.sources[k] for k in places),
            weights=self.weights[places],
            features=self.features[places],
            loads=self.loads[places],
        )

    def long_enough(self, shortest: float = SHORTEST) -> "Table":
        """Return the writes of at least so many seconds (paper, IV-A: five)."""
        return self.where(self.seconds >= shortest)

    def converged(self) -> "Table":
        """Return the samples whose runs are enough to know the mean (paper, III-D)."""
        rule = Convergence()
        return self.where(np.array([rule.reached(times) for times in self.times], bool))

    def check(self) -> None:
        """Raise InputError where there is too little to learn from: the same again is no more."""
        distinct = len(set(zip(self.writes, self.tags, strict=True)))
        if distinct < FEWEST:
            raise InputError(
                f"{distinct} samples are too few to learn from; give {FEWEST} or more, "
                "of writes that differ"
            )

    @cached_property
    def scales(self) -> Ints:
        """Return the compute nodes of each write."""
        return np.array([write.nodes for write in self.writes], np.int64)

    @property
    def known(self) -> list[str]:
        """Return the tags there are, in order."""
        return sorted(set(self.tags))

    def matrix(self, known: Sequence[str] | None = None) -> Floats:
        """Return the features, and a column of 0 and 1 for every known tag but the first."""
        columns = (self.known if known is None else known)[1:]
        told = np.array([[tag == one for one in columns] for tag in self.tags], np.float64)
        return np.hstack([self.features, told.reshape(len(self), len(columns))])


def _weight(times: Sequence[float]) -> float:
    """Return what a mean is worth: one that is within 10%, half of one that is exact.

    A single run says nothing of its own error; it counts as if its mean had just converged.
    """
    rule = Convergence()
    error = rule.error(times) if len(times) > 1 else rule.within
    return 1 / (1 + (error / rule.within) ** 2)


def scales(table: Table) -> list[int]:
    """Return the scales of a table, the smallest first."""
    return [int(scale) for scale in np.unique(table.scales)]


def split(table: Table, *, seed: int, part: float = 0.2) -> tuple[Table, Table]:
    """Return what is trained with, and a part of every scale that is not (paper, III-C2)."""
    rng = np.random.default_rng(seed)
    held = np.zeros(len(table), bool)
    for scale in scales(table):
        places = rng.permutation(np.flatnonzero(table.scales == scale))
        held[places[: round(part * len(places))]] = True
    if not held.any():
        raise InputError("no scale has samples enough for a part to be held out; give more")
    return table.where(~held), table.where(held)
