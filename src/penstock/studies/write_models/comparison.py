"""Chosen and base models of every technique, held against the four test sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.learn.write_models import features
from penstock.learn.write_models.features import Feature
from penstock.learn.write_models.regressors import FAILING, FIVE, Fitted, Linear
from penstock.learn.write_models.samples import Sample
from penstock.learn.write_models.search import Cell, Search, Tried
from penstock.studies.journal import Row
from penstock.studies.write_models import adaptation, sets
from penstock.studies.write_models.adaptation import Gain
from penstock.studies.write_models.sets import MACHINES, Size

Floats = NDArray[np.float64]
CONVERGED = ("small", "medium", "large")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One model: where it is from, and its relative errors (t' - t) / t by test set."""

    tried: Tried
    model: Fitted
    errors: Mapping[str, Floats]
    squares: Mapping[str, float]
    """Mean square errors on all converged test samples, and on the unconverged."""

    def share(self, set_: str, within: float) -> float:
        """Return the part of a test set whose error is at most so large."""
        return float(np.mean(np.abs(self.errors[set_]) <= within))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """Our model: relative errors by test set, and how often its intervals of 90% hold."""

    errors: Mapping[str, Floats]
    covered: Mapping[str, float]

    def share(self, set_: str, within: float) -> float:
        """Return the part of a test set whose error is at most so large."""
        return float(np.mean(np.abs(self.errors[set_]) <= within))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A machine: its samples, models, and what they say."""

    machine: str
    trained: int
    tests: Mapping[str, Sequence[Sample]]
    best: Mapping[str, Judged]
    base: Mapping[str, Judged]
    failing: Mapping[str, Judged]
    spreads: Sequence[float]
    """Largest over smallest of ten identical runs, for many writes."""
    gains: Sequence[Gain]
    """By the chosen lasso."""
    advised: Sequence[Gain]
    """By our model."""
    ours: Ours
    chosen: Sequence[tuple[Feature, float]]
    """Features of the chosen lasso model, with seconds a unit."""

    @property
    def unconverged(self) -> float:
        """Return the part of test samples that did not converge."""
        return len(self.tests["unconverged"]) / sum(map(len, self.tests.values()))


def compare(rows: Sequence[Row], size: Size, seed: int) -> list[Compared]:
    """Return what the rows of all cells say of each machine."""
    return [_compared(name, rows, size, seed) for name in MACHINES]


def _compared(name: str, rows: Sequence[Row], size: Size, seed: int) -> Compared:
    search, tests = sets.searching(name, size.part, seed), sets.tests(name, seed)
    own = [row for row in rows if row["machine"] == name]
    tried = [_tried(row) for row in own if "technique" in row]
    chosen = search.chosen(tried)
    whole = {t.cell.technique: t for t in tried if t.cell == search.base(t.cell.technique)}
    # Features are the cost, and the same for every model.
    asked = {
        set_: features.matrix(search.samples.machine, [sample.write for sample in some])
        for set_, some in tests.items()
    }
    best = {name: _judged(search, chosen[name], asked, tests) for name in FIVE}
    converged = [sample for set_ in CONVERGED for sample in tests[set_]]
    lasso = best["lasso"].model
    return Compared(
        machine=name,
        trained=len(search.samples),
        tests=tests,
        best=best,
        base={name: _judged(search, whole[name], asked, tests) for name in FIVE},
        failing={name: _judged(search, whole[name], asked, tests) for name in FAILING},
        spreads=sorted(float(str(row["spread"])) for row in own if "spread" in row),
        gains=adaptation.gains(
            search.samples.machine, lasso, converged, most=size.adapted, seed=seed
        ),
        advised=[
            Gain(promised=float(str(row["promised"])), simulated=float(str(row["gained"])))
            for row in own
            if "promised" in row
        ],
        ours=_ours([row for row in own if "low" in row]),
        chosen=_features(search, lasso),
    )


def _ours(rows: Sequence[Row]) -> Ours:
    errors: dict[str, list[float]] = {}
    held: dict[str, list[bool]] = {}
    for row in rows:
        said, low, high, observed = (
            float(str(row[name])) for name in ("seconds", "low", "high", "observed")
        )
        errors.setdefault(str(row["set"]), []).append(said / observed - 1)
        held.setdefault(str(row["set"]), []).append(low <= observed <= high)
    return Ours(
        errors={name: np.array(values) for name, values in errors.items()},
        covered={name: float(np.mean(values)) for name, values in held.items()},
    )


def _tried(row: Row) -> Tried:
    scales = tuple(map(int, str(row["scales"]).split()))
    cell = Cell(technique=str(row["technique"]), scales=scales)
    return Tried(cell=cell, option=int(str(row["option"])), error=float(str(row["error"])))


def _judged(
    search: Search,
    tried: Tried,
    asked: Mapping[str, Floats],
    tests: Mapping[str, Sequence[Sample]],
) -> Judged:
    model = search.fit(tried.cell, tried.options)
    errors: dict[str, Floats] = {}
    squares: dict[str, list[float]] = {"converged": [], "unconverged": []}
    for set_, some in tests.items():
        observed = np.array([sample.seconds for sample in some])
        missed = model.predict(asked[set_]) - observed
        errors[set_] = missed / observed
        squares["converged" if set_ in CONVERGED else set_].extend((missed**2).tolist())
    return Judged(
        tried=tried,
        model=model,
        errors=errors,
        squares={part: float(np.mean(values)) for part, values in squares.items()},
    )


def _features(search: Search, model: Fitted) -> list[tuple[Feature, float]]:
    """Return the features that a lasso model kept, those that matter most first."""
    assert isinstance(model, Linear)
    matrix = features.matrix(search.samples.machine, search.training.writes)
    known = features.features(search.samples.machine)
    weight = np.abs(model.coefficients) * matrix.std(axis=0)
    order = [int(k) for k in np.argsort(-weight) if weight[k] > 1e-3 * weight.max()]
    return [(known[k], float(model.coefficients[k])) for k in order]
