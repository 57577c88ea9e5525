"""Ours: the physical term, and boosted trees for what it leaves, to be asked for larger scales.

Options are chosen by what the model is for: it is made of the smaller scales and asked for the
larger ones, within the samples. Larger scales count more: they are nearer to what is asked. Beyond
the largest, bandwidth that the term sees growing may have met what no sample has shown. The trend
is damped: between that of the term, and time that grows as the data do.

Trees see the logarithms of loads and may only rise with them. They know nothing outside the range:
there what they add is damped to nothing, but only where that keeps the whole from falling as a load
grows.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from penstock.learn.trees import Tree, of_arrays
from penstock.learn.write_models import loads, term
from penstock.learn.write_models.arrays import Floats
from penstock.learn.write_models.intervals import forward
from penstock.learn.write_models.table import Table
from penstock.learn.write_models.term import Term

POWERS = (1.0, 1.5, 2.0, 3.0, 4.0)
APART = (0.1, 0.3, 1.0)
DAMPING = (0.0, 0.5)
ROUNDS = (0, 10, 40)
RATE = 0.1
DEPTH = 3
LEAF = 10
"""Samples in a leaf at least."""


class Boosted(msgspec.Struct, frozen=True, kw_only=True):
    """Trees whose sum is added to the logarithm of time."""

    trees: list[Tree]
    low: list[float]
    high: list[float]
    """The range of every log load."""

    def evaluate(self, row: Sequence[float]) -> float:
        """Return what is added for one row of log loads."""
        if not self.trees:
            return 0.0
        told = sum(tree.evaluate(row)[0] for tree in self.trees)
        above = sum(max(x - high, 0.0) for x, high in zip(row, self.high, strict=True))
        below = sum(max(low - x, 0.0) for x, low in zip(row, self.low, strict=True))
        return float(told * np.exp(-(above if told < 0 else below)))


class Extrapolating(msgspec.Struct, frozen=True, kw_only=True):
    """The fitted whole."""

    term: Term
    boosted: Boosted
    largest: int = 1
    """Nodes of the largest sample."""
    damping: float = 0.0
    """0: beyond the largest, time grows as the term says; 1: as the data do."""

    def evaluate(self, rows: Floats, tags: Sequence[str], grown: Floats) -> tuple[Floats, Floats]:
        """Return log seconds for rows of log loads, and the part of each stage.

        `grown`: by how much each log load has grown since the largest sample's scale.
        """
        told, parts = self.term.evaluate(rows, tags)
        if self.damping and grown.any():
            kept = self.term.evaluate(rows - grown, tags)[0] + grown.max(axis=1)
            told = told + self.damping * (kept - told)
        return told + [self.boosted.evaluate(row) for row in rows.tolist()], parts


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What is chosen within the samples."""

    power: float = 2.0
    apart: float = 0.3
    damping: float = 0.5
    rounds: int = 0


def fit(samples: Table, options: Options) -> Extrapolating:
    """Return the model of samples."""
    rows, largest = samples.loads, int(samples.scales.max())
    samples = replace(samples, weights=samples.weights * samples.scales / largest)
    found = term.fit(samples, power=options.power, apart=options.apart)
    left = np.log(samples.seconds) - found.evaluate(rows, samples.tags)[0]
    return Extrapolating(
        term=found,
        boosted=_boosted(rows, left, samples.weights, options.rounds),
        largest=largest,
        damping=options.damping,
    )


def predicted(model: Extrapolating, samples: Table) -> Floats:
    """Return the logarithm of seconds for all writes of a table."""
    grown = loads.grown(samples.machine, samples.scales, model.largest)
    return model.evaluate(samples.loads, samples.tags, grown)[0]


def chosen(samples: Table) -> Options:
    """Return the options with the least mean error on scales larger than those made of."""
    parts = list(forward(samples))
    if not parts:
        return Options()
    tried: dict[Options, float] = {}
    apart = APART if len(samples.known) > 1 else APART[:1]
    for options in (Options(power=p, apart=a) for p, a in itertools.product(POWERS, apart)):
        made = [(fit(smaller, options), larger) for smaller, larger in parts]
        for damping in DAMPING:
            damped = [(msgspec.structs.replace(m, damping=damping), larger) for m, larger in made]
            tried[msgspec.structs.replace(options, damping=damping)] = _error(damped)
    best = min(tried, key=lambda options: tried[options])
    most = msgspec.structs.replace(best, rounds=max(ROUNDS))
    grown = [(fit(smaller, most), larger) for smaller, larger in parts]

    def left(rounds: int) -> float:
        return _error([(_first(model, rounds), larger) for model, larger in grown])

    return msgspec.structs.replace(best, rounds=min(ROUNDS, key=left))


def _first(model: Extrapolating, rounds: int) -> Extrapolating:
    """Return the model as it was after so many rounds."""
    kept = msgspec.structs.replace(model.boosted, trees=model.boosted.trees[:rounds])
    return msgspec.structs.replace(model, boosted=kept)


def _error(asked: Sequence[tuple[Extrapolating, Table]]) -> float:
    """Return the mean of log errors; every scale that was gone on from counts the same."""
    errors = [
        np.abs(predicted(model, larger) - np.log(larger.seconds)).mean() for model, larger in asked
    ]
    return float(np.mean(errors))


def _boosted(rows: Floats, left: Floats, weights: Floats, rounds: int) -> Boosted:
    from sklearn.tree import DecisionTreeRegressor  # noqa: PLC0415 - slow to import

    trees: list[Tree] = []
    for _ in range(rounds):
        grown = DecisionTreeRegressor(
            max_depth=DEPTH,
            min_samples_leaf=LEAF,
            monotonic_cst=[1] * rows.shape[1],
            random_state=0,
        ).fit(rows, left, sample_weight=weights)
        trees.append(of_arrays(grown.tree_, (RATE * grown.tree_.value[:, 0, :]).tolist()))
        left = left - RATE * grown.predict(rows)
    return Boosted(trees=trees, low=rows.min(axis=0).tolist(), high=rows.max(axis=0).tolist())
