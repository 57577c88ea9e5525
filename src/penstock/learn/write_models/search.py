"""The model search of paper write-models, III-C2: every subset of scales, every option.

A cell is a technique and a subset of the training scales; what it gives depends on the cell, the
samples and the seed alone, so that cells may be spread over cores, kept, and gone on with. The best
model of a technique is that with the least mean square error on the part of every scale that was
held out; its base model is that of all scales.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.errors import InputError, unknown
from penstock.learn.write_models import regressors, table
from penstock.learn.write_models.arrays import Floats
from penstock.learn.write_models.moments import Moments, together
from penstock.learn.write_models.regressors import FIVE, GRIDS, Fitted, Options
from penstock.learn.write_models.table import Table

LINEAR = ("linear", "ridge", "lasso")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """A technique, and the scales that it is trained with."""

    technique: str
    scales: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What the best options of a cell reach."""

    cell: Cell
    option: int
    """Its place in GRIDS of the technique."""
    error: float
    """Mean square, on what was held out; seconds squared."""

    @property
    def options(self) -> Options:
        """Return what was tried."""
        return GRIDS[self.cell.technique][self.option]


class Search:
    """Samples, split once; a function of cells."""

    def __init__(self, samples: Table, *, seed: int) -> None:
        samples.check()
        self.samples = samples
        self.seed = seed
        self.known = samples.known
        self.training, self.held = table.split(samples, seed=seed)
        self.scales = table.scales(self.training)

    def cells(self, techniques: Sequence[str] = FIVE) -> Iterator[Cell]:
        """Yield every subset of the scales for every technique: 255 of eight scales."""
        for technique in techniques:
            if technique not in GRIDS:
                raise unknown("technique", technique, GRIDS)
            for size in range(1, len(self.scales) + 1):
                for some in itertools.combinations(self.scales, size):
                    yield Cell(technique=technique, scales=some)

    def base(self, technique: str) -> Cell:
        """Return the cell of all scales."""
        return Cell(technique=technique, scales=tuple(self.scales))

    def tried(self, cell: Cell) -> Tried:
        """Return what a cell reaches with the best of its options."""
        return self.fitted(cell)[0]

    def fitted(self, cell: Cell) -> tuple[Tried, Fitted]:
        """Return that, and the model."""
        models = [self.fit(cell, options) for options in GRIDS[cell.technique]]
        errors = [
            float(np.mean((model.predict(self._held) - self.held.seconds) ** 2)) for model in models
        ]
        option = int(np.argmin(errors))
        return Tried(cell=cell, option=option, error=errors[option]), models[option]

    def fit(self, cell: Cell, options: Options) -> Fitted:
        """Return the model of a cell."""
        if strange := set(cell.scales) - set(self.scales):
            raise InputError(f"no sample to train with has {min(strange)} nodes")
        if cell.technique in LINEAR:
            moments = together(self._moments[scale] for scale in cell.scales)
            return regressors.of_moments(cell.technique, options, moments)
        kept = np.isin(self.training.scales, cell.scales)
        return regressors.fit(
            cell.technique,
            options,
            self._training[kept],
            self.training.seconds[kept],
            seed=self.seed,
        )

    def chosen(self, tried: Iterable[Tried]) -> dict[str, Tried]:
        """Return the best of each technique; of equals the first cell."""
        best: dict[str, Tried] = {}
        for one in sorted(tried, key=lambda one: (one.error, one.cell)):
            best.setdefault(one.cell.technique, one)
        return best

    @cached_property
    def _training(self) -> Floats:
        return self.training.matrix(self.known)

    @cached_property
    def _held(self) -> Floats:
        return self.held.matrix(self.known)

    @cached_property
    def _moments(self) -> dict[int, Moments]:
        return {
            scale: Moments.of(
                self._training[self.training.scales == scale],
                self.training.seconds[self.training.scales == scale],
            )
            for scale in self.scales
        }
