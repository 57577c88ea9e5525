"""Chosen and base models of every technique, held against the four test sets."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.campaign.journal import Row
from penstock.learn.write_models.features import Feature
from penstock.learn.write_models.regressors import (
    KERNEL_TECHNIQUES,
    PAPER_TECHNIQUES,
    Options,
    Regressor,
)
from penstock.learn.write_models.samples import Sample
from penstock.learn.write_models.training import Cell, CellResult, Search
from penstock.studies.write_models import cells, unconverged
from penstock.studies.write_models.adaptation import Gain
from penstock.studies.write_models.cells import GAINS, MACHINES, Amounts
from penstock.studies.write_models.unconverged import Unconverged

Floats = NDArray[np.float64]
NAMES = {"cetus": "Cetus", "titan": "Titan"}
DEFAULTS: Mapping[str, Options] = {
    "linear": {},
    "ridge": {"penalty": 0.001},
    "lasso": {"penalty": 1.0},
    "tree": {"leaf": 1},
    "forest": {"leaf": 1, "trees": 60},
}
"""What scikit-learn does unasked, or what is next to it in our grid: for ridge its lambda is 1 over
the number of samples, and its forests have 100 trees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelErrors:
    """One model: where it is from, and its relative errors (t' - t) / t by test set."""

    result: CellResult
    model: Regressor
    errors: Mapping[str, Floats]
    missed: Mapping[str, Floats]
    """By how many seconds it errs, by test set."""
    squares: Mapping[str, float]
    """Mean square errors on all converged test samples, and on the unconverged."""

    def share(self, set_: str, within: float) -> float:
        """Return the part of a test set whose error is at most `within`."""
        return float(np.mean(np.abs(self.errors[set_]) <= within))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """Our model: relative errors by test set, and how often its intervals of 90% hold."""

    errors: Mapping[str, Floats]
    covered: Mapping[str, float]
    """Part of the means that lie in their intervals."""
    covered_runs: Mapping[str, float]
    """Part of the single runs that lie in their intervals; every sample counts the same."""

    def share(self, set_: str, within: float) -> float:
        """Return the part of a test set whose error is at most so large."""
        return float(np.mean(np.abs(self.errors[set_]) <= within))


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAccuracy:
    """The chosen lasso, or another model, on one test set: one entry per draw of samples."""

    bias: Floats
    """The median of (t' - t) / t."""
    within: Mapping[float, Floats]
    """Parts of the set whose error is at most so large."""
    squares: Floats
    """Mean square errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A machine: its samples, models and their errors."""

    machine: str
    trained: int
    tests: Mapping[str, Sequence[Sample]]
    best: Mapping[str, ModelErrors]
    base: Mapping[str, ModelErrors]
    """Models of all scales, with the options that validate best."""
    default: Mapping[str, ModelErrors]
    """Models of all scales, with scikit-learn's default options or the nearest in the grid."""
    lasso: Mapping[str, Mapping[str, SetAccuracy]]
    """Of the chosen lasso, by reading of the paper and test set (Table VII)."""
    choices: Mapping[str, int]
    """By reading, how many different pairs of lambda and scales the draws chose."""
    instead: Mapping[str, Mapping[str, SetAccuracy]]
    """Of models that are not the chosen lasso, by what they are and test set."""
    varied: Mapping[str, Unconverged]
    """Unconverged samples of other kinds than those of the test set, by variation."""
    longest: float
    """Seconds of the longest write that models are trained with."""
    slowest: Mapping[str, int]
    """How many converged test samples each stage of the simulated path limits."""
    searched: Mapping[str, Mapping[str, Floats]]
    """Mean square errors by technique, in validation and on the test sets, for all subsets."""
    failing: Mapping[str, ModelErrors]
    spreads: Sequence[float]
    """Largest over smallest of ten identical runs, for many writes."""
    gains: Mapping[str, Sequence[Gain]]
    """What adaptation and advice gain, by the name of their cells."""
    ours: Ours
    features: Sequence[Feature]
    """Features of the best lasso model, those that matter most first."""
    slow_metadata: Sequence[str]
    """The same, by name, of a lasso for the machine with slow metadata; empty: not tried."""

    @property
    def where(self) -> str:
        """Return its name, and that nothing was measured on it."""
        return f"{NAMES[self.machine]} (simulated)"

    @property
    def unconverged(self) -> float:
        """Return the part of test samples that did not converge."""
        return len(self.tests["unconverged"]) / sum(map(len, self.tests.values()))


def compare(rows: Sequence[Row], size: Amounts, seed: int) -> list[Compared]:
    """Return what the rows of all cells say of each machine."""
    return [_compared(name, rows, size, seed) for name in MACHINES]


def _compared(name: str, rows: Sequence[Row], size: Amounts, seed: int) -> Compared:
    search, tests = cells.searching(name, size.part, seed), cells.tests(name, size.tested, seed)
    own = [row for row in rows if row["machine"] == name]
    results = [_cell_result(row) for row in own if "technique" in row]
    by_reading: dict[str, list[Row]] = {}
    for row in own:
        if "reading" in row:
            by_reading.setdefault(str(row["reading"]), []).append(row)
    best_results = search.best(results)
    whole = {t.cell.technique: t for t in results if t.cell == search.base(t.cell.technique)}
    best = {name: _evaluate(search, best_results[name], size.tested) for name in PAPER_TECHNIQUES}
    return Compared(
        machine=name,
        trained=len(search.samples),
        tests=tests,
        best=best,
        base={name: _evaluate(search, whole[name], size.tested) for name in PAPER_TECHNIQUES},
        default={
            name: _evaluate(search, whole[name], size.tested, DEFAULTS[name])
            for name in PAPER_TECHNIQUES
        },
        lasso={reading: _accuracies(some, tests) for reading, some in by_reading.items()},
        choices={
            reading: len({(row["penalty"], row["scales"]) for row in some})
            for reading, some in by_reading.items()
        },
        instead={
            what: _accuracies([row for row in own if row.get("instead") == what], tests)
            for what in (cells.BY_TEST, cells.FOREST)
        },
        varied={
            variation: unconverged.pooled(row for row in own if row.get("variation") == variation)
            for variation in unconverged.VARIATIONS
        },
        longest=float(search.training.seconds.max()),
        slowest=Counter(str(row["slowest"]) for row in own if "slowest" in row),
        searched={name: _searched(own, name) for name in PAPER_TECHNIQUES},
        failing={name: _evaluate(search, whole[name], size.tested) for name in KERNEL_TECHNIQUES},
        spreads=sorted(float(str(row["spread"])) for row in own if "spread" in row),
        gains={what: _gains([row for row in own if row.get("gain") == what]) for what in GAINS},
        ours=_ours([row for row in own if "set" in row]),
        features=cells.leading_features(search, best["lasso"].model),
        slow_metadata=[str(row["kept"]) for row in own if "kept" in row],
    )


def _accuracies(rows: Sequence[Row], tests: Iterable[str]) -> dict[str, SetAccuracy]:
    def column(set_: str, name: str) -> Floats:
        return np.array([float(str(row[name])) for row in rows if row["tested"] == set_])

    return {
        set_: SetAccuracy(
            bias=column(set_, "bias"),
            within={limit: column(set_, f"within_{limit}") for limit in (0.2, 0.3)},
            squares=column(set_, "square"),
        )
        for set_ in tests
    }


def _searched(rows: Sequence[Row], technique: str) -> Mapping[str, Floats]:
    names = ("error", "converged", "unconverged")
    own = [row for row in rows if row.get("technique") == technique]
    return {name: np.array([float(str(row[name])) for row in own]) for name in names}


def _gains(rows: Sequence[Row]) -> list[Gain]:
    names = ("promised", "simulated", "low", "high", "error", "typical")
    return [Gain(**{name: float(str(row[name])) for name in names}) for row in rows]


def _ours(rows: Sequence[Row]) -> Ours:
    errors: dict[str, list[float]] = {}
    held: dict[str, list[bool]] = {}
    runs: dict[str, list[float]] = {}
    for row in rows:
        predicted, low, high, observed = (
            float(str(row[name])) for name in ("seconds", "low", "high", "observed")
        )
        errors.setdefault(str(row["set"]), []).append(predicted / observed - 1)
        held.setdefault(str(row["set"]), []).append(low <= observed <= high)
        runs.setdefault(str(row["set"]), []).append(float(str(row["runs_held"])))
    return Ours(
        errors={name: np.array(values) for name, values in errors.items()},
        covered={name: float(np.mean(values)) for name, values in held.items()},
        covered_runs={name: float(np.mean(values)) for name, values in runs.items()},
    )


def _cell_result(row: Row) -> CellResult:
    scales = tuple(map(int, str(row["scales"]).split()))
    cell = Cell(technique=str(row["technique"]), scales=scales)
    return CellResult(cell=cell, option=int(str(row["option"])), error=float(str(row["error"])))


def _evaluate(
    search: Search, result: CellResult, tested: float, options: Options | None = None
) -> ModelErrors:
    model = search.fit(result.cell, result.options if options is None else options)
    name, seed = search.samples.machine.name, search.seed
    missed = cells.missed(model, name, tested, seed)
    by_set = cells.features_and_seconds(name, tested, seed)
    return ModelErrors(
        result=result,
        model=model,
        errors={set_: some / by_set[set_][1] for set_, some in missed.items()},
        missed=missed,
        squares=cells.squares(missed),
    )
