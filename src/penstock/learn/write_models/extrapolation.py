"""Our model of writes: a physical term, and boosted trees for the rest, made for larger scales.

The term is load over capacity at every stage, and a soft maximum over stages:

    t^p = sum over stages of (load / capacity)^p,  p >= 1

p = 1: one stage after the other; large p: all at once, and the slowest decides. The latency, which
depends on no load, is a stage of load 1. A tag (the I/O library, for example) has capacities of its
own, as far from the common ones as the samples demand. Time never falls as a load grows, at any
scale: that is what lets the term extrapolate.

Trees get the logarithms of loads and may only rise with them. They know nothing outside the range
of the samples: there, their contribution is damped to zero, but only where that keeps the sum from
falling as a load grows.

Options are selected for the purpose of the model: it is fitted to the smaller scales and evaluated
on the larger ones, within the samples. Larger scales count more: they are nearer to what is to be
predicted. Beyond the largest scale, a resource that no sample has saturated may be exhausted, so
the trend is damped: between that of the term, and time in proportion to the data.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from penstock.learn.trees import Tree, tree_from_sklearn
from penstock.learn.write_models.dataset import Dataset
from penstock.learn.write_models.intervals import forward_splits
from penstock.learn.write_models.parameters import Floats, load_growth

POWERS = (1.0, 1.5, 2.0, 3.0, 4.0)
APART = (0.1, 0.3, 1.0)
DAMPING = (0.0, 0.5)
ROUNDS = (0, 10, 40)
RATE = 0.1
DEPTH = 3
LEAF = 10
"""Minimum number of samples in a leaf."""
TIE = 0.002
"""How strongly capacities are held to their starting values, for stages that the samples do not
distinguish."""


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A fitted physical term."""

    power: float
    level: list[float]
    """For every stage: the logarithm of seconds for a load of one."""
    by_tag: dict[str, list[float]]
    """What a tag adds to that."""

    def levels(self, tags: Sequence[str]) -> Floats:
        """Return the levels of every stage for each tag; the common ones for an unknown tag."""
        zero = [0.0] * len(self.level)
        added = np.array([self.by_tag.get(tag, zero) for tag in tags], np.float64)
        return np.asarray(np.array(self.level) + added, np.float64)

    def evaluate(self, loads: Floats, tags: Sequence[str]) -> tuple[Floats, Floats]:
        """Return log seconds for rows of log loads, and each stage's fraction of them."""
        return soft_maximum(loads + self.levels(tags), self.power)


def soft_maximum(logs: Floats, power: float) -> tuple[Floats, Floats]:
    """Return log((sum of e^(p x))^(1/p)) of each row, and each entry's fraction of the sum."""
    top = logs.max(axis=1, keepdims=True)
    raised = np.exp(power * (logs - top))
    whole = raised.sum(axis=1, keepdims=True)
    return (top + np.log(whole) / power)[:, 0], raised / whole


def fit_term(samples: Dataset, *, power: float, apart: float) -> Term:
    """Fit a term by least squares of log errors; a larger `apart` holds tags closer together."""
    from scipy.optimize import least_squares  # noqa: PLC0415 - slow to import

    loads = samples.loads
    groups = samples.tag_names if len(samples.tag_names) > 1 else []
    stages, target = loads.shape[1], np.log(samples.seconds)
    weight = np.sqrt(samples.weights)
    member = np.array([[tag == one for one in groups] for tag in samples.tags], np.float64)
    member = member.reshape(len(target), len(groups))
    # All stages start with the same part of the time, so that each has a gradient.
    start = target.mean() - loads.mean(axis=0) - np.log(stages) / power
    penalty = np.concatenate([np.full(stages, TIE), np.full(stages * len(groups), apart)])

    def spread(x: Floats) -> Floats:
        by_tag = member @ x[stages:].reshape(-1, stages)
        return np.asarray(loads + start + x[:stages] + by_tag, np.float64)

    def residuals(x: Floats) -> Floats:
        predicted, _ = soft_maximum(spread(x), power)
        return np.concatenate([weight * (predicted - target), penalty * x])

    def slopes(x: Floats) -> Floats:
        _, parts = soft_maximum(spread(x), power)
        parts = weight[:, None] * parts
        by_tag = (member[:, :, None] * parts[:, None, :]).reshape(len(parts), -1)
        return np.vstack([np.hstack([parts, by_tag]), np.diag(penalty)])

    x = least_squares(
        residuals,
        np.zeros(len(penalty)),
        slopes,
        loss="soft_l1",
        f_scale=0.3,
        max_nfev=100,
        ftol=1e-6,
    ).x
    added: Mapping[str, Floats] = dict(zip(groups, x[stages:].reshape(-1, stages), strict=True))
    return Term(
        power=power,
        level=(start + x[:stages]).tolist(),
        by_tag={tag: values.tolist() for tag, values in added.items()},
    )


class Boosted(msgspec.Struct, frozen=True, kw_only=True):
    """Trees whose sum is added to the logarithm of time."""

    trees: list[Tree]
    low: list[float]
    high: list[float]
    """The range of every log load."""

    def evaluate(self, row: Sequence[float]) -> float:
        """Return the contribution for one row of log loads."""
        if not self.trees:
            return 0.0
        value = sum(tree.evaluate(row)[0] for tree in self.trees)
        above = sum(max(x - high, 0.0) for x, high in zip(row, self.high, strict=True))
        below = sum(max(low - x, 0.0) for x, low in zip(row, self.low, strict=True))
        return float(value * np.exp(-(above if value < 0 else below)))


class Extrapolation(msgspec.Struct, frozen=True, kw_only=True):
    """The fitted model: term and trees."""

    term: Term
    boosted: Boosted
    largest: int = 1
    """Nodes of the largest sample."""
    damping: float = 0.0
    """Beyond the largest sample time grows as the term says (0), or in proportion to data (1)."""

    def evaluate(self, rows: Floats, tags: Sequence[str], growth: Floats) -> tuple[Floats, Floats]:
        """Return log seconds for rows of log loads, and each stage's fraction.

        `growth` is by how much each log load has grown beyond the largest sample's scale.
        """
        seconds, parts = self.term.evaluate(rows, tags)
        if self.damping and growth.any():
            saturated = self.term.evaluate(rows - growth, tags)[0] + growth.max(axis=1)
            seconds = seconds + self.damping * (saturated - seconds)
        return seconds + [self.boosted.evaluate(row) for row in rows.tolist()], parts


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What is selected within the samples."""

    power: float = 2.0
    apart: float = 0.3
    damping: float = 0.5
    rounds: int = 0


def fit(samples: Dataset, options: Options) -> Extrapolation:
    """Fit the model to samples."""
    rows, largest = samples.loads, int(samples.scales.max())
    samples = replace(samples, weights=samples.weights * samples.scales / largest)
    term = fit_term(samples, power=options.power, apart=options.apart)
    residual = np.log(samples.seconds) - term.evaluate(rows, samples.tags)[0]
    return Extrapolation(
        term=term,
        boosted=_fit_trees(rows, residual, samples.weights, options.rounds),
        largest=largest,
        damping=options.damping,
    )


def predict(model: Extrapolation, samples: Dataset) -> Floats:
    """Return the logarithm of seconds for all writes of a dataset."""
    growth = load_growth(samples.machine, samples.scales, model.largest)
    return model.evaluate(samples.loads, samples.tags, growth)[0]


def select_options(samples: Dataset) -> Options:
    """Return the options with the least mean error on scales larger than those fitted to."""
    splits = list(forward_splits(samples))
    if not splits:
        return Options()
    errors: dict[Options, float] = {}
    apart = APART if len(samples.tag_names) > 1 else APART[:1]
    for options in (Options(power=p, apart=a) for p, a in itertools.product(POWERS, apart)):
        models = [(fit(smaller, options), larger) for smaller, larger in splits]
        for damping in DAMPING:
            damped = [(msgspec.structs.replace(m, damping=damping), larger) for m, larger in models]
            errors[msgspec.structs.replace(options, damping=damping)] = _error(damped)
    best = min(errors, key=lambda options: errors[options])
    most = msgspec.structs.replace(best, rounds=max(ROUNDS))
    boosted = [(fit(smaller, most), larger) for smaller, larger in splits]

    def error(rounds: int) -> float:
        return _error([(_after_rounds(model, rounds), larger) for model, larger in boosted])

    return msgspec.structs.replace(best, rounds=min(ROUNDS, key=error))


def _after_rounds(model: Extrapolation, rounds: int) -> Extrapolation:
    """Return the model as it was after that many rounds of boosting."""
    boosted = msgspec.structs.replace(model.boosted, trees=model.boosted.trees[:rounds])
    return msgspec.structs.replace(model, boosted=boosted)


def _error(pairs: Sequence[tuple[Extrapolation, Dataset]]) -> float:
    """Return the mean log error; every split counts the same."""
    errors = [
        np.abs(predict(model, larger) - np.log(larger.seconds)).mean() for model, larger in pairs
    ]
    return float(np.mean(errors))


def _fit_trees(rows: Floats, residual: Floats, weights: Floats, rounds: int) -> Boosted:
    from sklearn.tree import DecisionTreeRegressor  # noqa: PLC0415 - slow to import

    trees: list[Tree] = []
    for _ in range(rounds):
        fitted = DecisionTreeRegressor(
            max_depth=DEPTH,
            min_samples_leaf=LEAF,
            monotonic_cst=[1] * rows.shape[1],
            random_state=0,
        ).fit(rows, residual, sample_weight=weights)
        trees.append(tree_from_sklearn(fitted.tree_, (RATE * fitted.tree_.value[:, 0, :]).tolist()))
        residual = residual - RATE * fitted.predict(rows)
    return Boosted(trees=trees, low=rows.min(axis=0).tolist(), high=rows.max(axis=0).tolist())
