"""Makes models of samples, ready to be asked and stored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from penstock.errors import unknown
from penstock.learn.write_models import extrapolating, intervals, regressors
from penstock.learn.write_models.arrays import Floats
from penstock.learn.write_models.intervals import Predictor
from penstock.learn.write_models.model import (
    FORMAT,
    VERSION,
    Coefficients,
    Learned,
    Model,
    looked_at,
)
from penstock.learn.write_models.ranges import Range
from penstock.learn.write_models.regressors import FIVE, Fitted, Grown, Linear
from penstock.learn.write_models.search import Search, Tried
from penstock.learn.write_models.table import Table

EXTRAPOLATING = "extrapolating"
TECHNIQUES = (EXTRAPOLATING, *FIVE)


def train(
    samples: Table,
    technique: str = EXTRAPOLATING,
    *,
    seed: int = 1,
    advance: Callable[[int], None] = lambda _: None,
) -> Learned:
    """Return a model; for the paper's five, the best of the search over subsets of scales."""
    samples.check()
    if technique == EXTRAPOLATING:
        return of_term(samples, seed=seed)
    if technique not in FIVE:
        raise unknown("technique", technique, TECHNIQUES)
    search = Search(samples.long_enough(), seed=seed)
    tried: list[Tried] = []
    for cell in search.cells([technique]):
        tried.append(search.tried(cell))
        advance(1)
    return of_search(search, search.chosen(tried)[technique])


def of_term(samples: Table, *, seed: int) -> Learned:
    """Return our model of samples."""
    options = extrapolating.chosen(samples)

    def fit(some: Table) -> Predictor:
        model = extrapolating.fit(some, options)
        return lambda asked: extrapolating.predicted(model, asked)

    made: dict[str, Any] = msgspec.structs.asdict(options)
    return _learned(
        samples,
        EXTRAPOLATING,
        fit,
        {
            "kind": EXTRAPOLATING,
            "tags": samples.known,
            "extrapolating": extrapolating.fit(samples, options),
        },
        made | {"samples": len(samples), "seed": seed},
    )


def of_search(search: Search, tried: Tried) -> Learned:
    """Return the model of a cell of a search, with intervals for its technique and options."""
    cell, options = tried.cell, tried.options
    floor = _least(search.samples)

    def fit(some: Table) -> Predictor:
        matrix = some.matrix(search.known)
        fitted = regressors.fit(cell.technique, options, matrix, some.seconds, seed=search.seed)
        return _Logarithm(fitted, search.known, floor)

    made: dict[str, Any] = dict(options) | {
        "scales": list(cell.scales),
        "error": tried.error,
        "samples": int(np.isin(search.samples.scales, cell.scales).sum()),
        "seed": search.seed,
    }
    parts = _parts(search.fit(cell, options), cell.technique)
    # What it is made of is what it has seen; columns are those of all tags.
    seen = search.samples.where(np.isin(search.samples.scales, cell.scales))
    return _learned(seen, cell.technique, fit, parts | {"tags": search.known}, made)


@dataclass(frozen=True, slots=True)
class _Logarithm:
    """A model of seconds, as one of their logarithm."""

    fitted: Fitted
    known: Sequence[str]
    least: float

    def __call__(self, asked: Table) -> Floats:
        told = self.fitted.predict(asked.matrix(self.known))
        return np.asarray(np.log(np.maximum(told, self.least)), np.float64)


def _parts(fitted: Fitted, technique: str) -> dict[str, Any]:
    if isinstance(fitted, Linear):
        told = Coefficients(intercept=fitted.intercept, by_feature=fitted.coefficients.tolist())
        return {"kind": "linear", "linear": told}
    if isinstance(fitted, Grown):
        return {"kind": "trees", "trees": fitted.trees}
    raise unknown("technique that can be stored", technique, TECHNIQUES)


def _learned(
    samples: Table,
    technique: str,
    fit: Callable[[Table], Predictor],
    parts: dict[str, Any],
    made: dict[str, Any],
) -> Learned:
    return Learned(
        Model(
            format=FORMAT,
            version=VERSION,
            machine=samples.machine,
            technique=technique,
            features=looked_at(samples.machine, parts["kind"]),
            sources=sorted(set(samples.sources)),
            seen=Range.of(samples),
            interval=intervals.calibrated(fit, samples, seed=made["seed"]),
            least=_least(samples),
            made=made,
            **parts,
        )
    )


def _least(samples: Table) -> float:
    """Return the seconds below which no prediction goes: linear models know no such thing."""
    return float(samples.seconds.min()) / 10
