"""Trains models of writes: ours, and the paper's by its model search (write-models, III-C2).

The search tries every subset of the training scales with every option. A cell is a technique and a
subset of scales; its result depends on the cell, the samples and the seed alone, so that cells can
run in parallel, be stored, and be resumed. The best model of a technique has the least mean square
error on the held-out part of every scale; its base model is that of all scales.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from penstock.errors import InputError, unknown
from penstock.learn.write_models import extrapolation, intervals, regressors
from penstock.learn.write_models.dataset import Dataset, Range
from penstock.learn.write_models.intervals import Predictor
from penstock.learn.write_models.model import (
    FORMAT,
    VERSION,
    Coefficients,
    Model,
    TrainedModel,
    input_names,
)
from penstock.learn.write_models.parameters import Floats
from penstock.learn.write_models.regressors import (
    GRIDS,
    LINEAR,
    PAPER_TECHNIQUES,
    Linear,
    Moments,
    Options,
    Regressor,
    add_moments,
)

EXTRAPOLATING = "extrapolating"
TECHNIQUES = (EXTRAPOLATING, *PAPER_TECHNIQUES)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """A technique, and the scales that it is trained with."""

    technique: str
    scales: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """The best options of a cell, and their error."""

    cell: Cell
    option: int
    """Index into GRIDS of the technique."""
    error: float
    """Mean square error on the held-out samples, in seconds squared."""

    @property
    def options(self) -> Options:
        """Return the options."""
        return GRIDS[self.cell.technique][self.option]


class Search:
    """The model search over one split of samples."""

    def __init__(self, samples: Dataset, *, seed: int) -> None:
        samples.check()
        self.samples = samples
        self.seed = seed
        self.tag_names = samples.tag_names
        self.training, self.held_out = samples.split(seed=seed)
        self.scales = self.training.distinct_scales
        self._unions: dict[tuple[int, ...], Moments] = {}

    def cells(self, techniques: Sequence[str] = PAPER_TECHNIQUES) -> Iterator[Cell]:
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

    def evaluate(self, cell: Cell) -> CellResult:
        """Return the result of a cell with the best of its options."""
        return self.fit_best(cell)[0]

    def fit_best(self, cell: Cell) -> tuple[CellResult, Regressor]:
        """Return the result of a cell, and the model."""
        models = [self.fit(cell, options) for options in GRIDS[cell.technique]]
        errors = [self.error(model) for model in models]
        option = int(np.argmin(errors))
        return CellResult(cell=cell, option=option, error=errors[option]), models[option]

    def error(self, model: Regressor) -> float:
        """Return the mean square error on the held-out samples, in seconds squared."""
        return float(np.mean((model.predict(self._held_out_matrix) - self.held_out.seconds) ** 2))

    def fit(self, cell: Cell, options: Options) -> Regressor:
        """Fit the model of a cell."""
        if missing := set(cell.scales) - set(self.scales):
            raise InputError(f"no sample to train with has {min(missing)} nodes")
        if cell.technique in LINEAR:
            return regressors.fit_moments(cell.technique, options, self._of_scales(cell.scales))
        rows = np.isin(self.training.scales, cell.scales)
        return regressors.fit(
            cell.technique,
            options,
            self._training_matrix[rows],
            self.training.seconds[rows],
            seed=self.seed,
        )

    def best(self, results: Iterable[CellResult]) -> dict[str, CellResult]:
        """Return the best result of each technique; of equals the first cell."""
        best: dict[str, CellResult] = {}
        for one in sorted(results, key=lambda one: (one.error, one.cell)):
            best.setdefault(one.cell.technique, one)
        return best

    def _of_scales(self, scales: tuple[int, ...]) -> Moments:
        """Return the moments of the samples of these scales; they are the same for all options."""
        if scales not in self._unions:
            self._unions[scales] = add_moments(self._moments[scale] for scale in scales)
        return self._unions[scales]

    @cached_property
    def _training_matrix(self) -> Floats:
        return self.training.matrix(self.tag_names)

    @cached_property
    def _held_out_matrix(self) -> Floats:
        return self.held_out.matrix(self.tag_names)

    @cached_property
    def _moments(self) -> dict[int, Moments]:
        return {
            scale: Moments.from_samples(
                self._training_matrix[self.training.scales == scale],
                self.training.seconds[self.training.scales == scale],
            )
            for scale in self.scales
        }


def train(
    samples: Dataset,
    technique: str = EXTRAPOLATING,
    *,
    seed: int = 1,
    advance: Callable[[int], None] = lambda _: None,
) -> TrainedModel:
    """Train a model; a technique of the paper gives the best of the search over scales."""
    samples.check()
    if technique == EXTRAPOLATING:
        return train_extrapolation(samples, seed=seed)
    if technique not in PAPER_TECHNIQUES:
        raise unknown("technique", technique, TECHNIQUES)
    search = Search(samples.long_enough(), seed=seed)
    results: list[CellResult] = []
    for cell in search.cells([technique]):
        results.append(search.evaluate(cell))
        advance(1)
    return train_regression(search, search.best(results)[technique])


def train_extrapolation(samples: Dataset, *, seed: int) -> TrainedModel:
    """Train our model."""
    options = extrapolation.select_options(samples)

    def fit(some: Dataset) -> Predictor:
        model = extrapolation.fit(some, options)
        return lambda tested: extrapolation.predict(model, tested)

    return _trained_model(
        samples,
        fit,
        technique=EXTRAPOLATING,
        kind=EXTRAPOLATING,
        tags=samples.tag_names,
        extrapolating=extrapolation.fit(samples, options),
        provenance=msgspec.structs.asdict(options) | {"samples": len(samples), "seed": seed},
    )


def train_regression(search: Search, result: CellResult) -> TrainedModel:
    """Train the model of a search's cell, with intervals for its technique and options."""
    cell, options = result.cell, result.options
    least = _least(search.samples)

    def fit(some: Dataset) -> Predictor:
        matrix = some.matrix(search.tag_names)
        model = regressors.fit(cell.technique, options, matrix, some.seconds, seed=search.seed)

        def predict(tested: Dataset) -> Floats:
            seconds = model.predict(tested.matrix(search.tag_names))
            return np.asarray(np.log(np.maximum(seconds, least)), np.float64)

        return predict

    model = search.fit(cell, options)
    parts: dict[str, Any]
    if isinstance(model, Linear):
        linear = Coefficients(intercept=model.intercept, by_feature=model.coefficients.tolist())
        parts = {"kind": "linear", "linear": linear}
    elif cell.technique in PAPER_TECHNIQUES:
        parts = {"kind": "trees", "trees": regressors.stored_trees(model)}
    else:
        raise unknown("technique that can be stored", cell.technique, TECHNIQUES)
    # Its range is that of its own scales; its columns are those of all tags.
    rows = np.isin(search.samples.scales, cell.scales)
    return _trained_model(
        search.samples.select(rows),
        fit,
        technique=cell.technique,
        tags=search.tag_names,
        provenance=dict(options)
        | {
            "scales": list(cell.scales),
            "error": result.error,
            "samples": int(rows.sum()),
            "seed": search.seed,
        },
        **parts,
    )


def _trained_model(
    samples: Dataset, fit: Callable[[Dataset], Predictor], **parts: Any
) -> TrainedModel:
    return TrainedModel(
        Model(
            format=FORMAT,
            version=VERSION,
            machine=samples.machine,
            features=input_names(samples.machine, parts["kind"]),
            sources=sorted({one.source for one in samples.samples}),
            range=Range.from_dataset(samples),
            interval=intervals.calibrate(fit, samples, seed=parts["provenance"]["seed"]),
            least=_least(samples),
            **parts,
        )
    )


def _least(samples: Dataset) -> float:
    """Return the lower limit of predictions in seconds: linear models have none of their own."""
    return float(samples.seconds.min()) / 10
