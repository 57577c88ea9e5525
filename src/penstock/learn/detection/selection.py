"""Which features a model looks at: those that go with the pattern most, by Spearman's rank.

The thesis ranks 35 metrics by their correlation with the class as a number (Figure 3.2), which
depends on how classes are numbered. Here a feature counts as much as with the class that it tells
from the others best, whatever the numbering. Of two that say the same, the weaker is left out.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.learn.detection.features import FEATURES, SCALE_FREE
from penstock.learn.detection.samples import Sample
from penstock.model.observation import PATTERNS

COUNT = 5
ALIKE = 0.98
"""Features with at least this rank correlation are redundant."""
WEAK = 0.2
"""A smaller coefficient counts as no relation."""
THESIS_ORDER = ("file-per-process", "shared-strided", "shared-contiguous")
"""The order of its list of classes (3.2): by distance between requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Spearman's coefficient of a feature: with the class's number, and with each class alone."""

    feature: str
    ordered: float
    by_class: tuple[float, ...]

    @property
    def strength(self) -> float:
        """Return the largest coefficient with any class."""
        return max(map(abs, self.by_class))


def table(samples: Sequence[Sample], names: Sequence[str]) -> NDArray[np.float64]:
    """Return the features of samples: one row per sample, one column per name."""
    columns = [FEATURES[name] for name in names]
    return np.array([[f(one.observation) for f in columns] for one in samples], dtype=np.float64)


def correlations(samples: Sequence[Sample]) -> list[Correlation]:
    """Return all candidates, the strongest first."""
    names = list(FEATURES)
    ranks = _ranks(table(samples, names))
    ordered = _ranks(np.array([[THESIS_ORDER.index(one.pattern)] for one in samples], float))
    alone = _ranks(np.array([[one.pattern == p for p in PATTERNS] for one in samples], float))
    with_order, with_class = _pearson(ranks, ordered), _pearson(ranks, alone)
    result = [
        Correlation(
            feature=name,
            ordered=float(with_order[k, 0]),
            by_class=tuple(float(x) for x in with_class[k]),
        )
        for k, name in enumerate(names)
    ]
    return sorted(result, key=lambda one: -one.strength)


def select(
    samples: Sequence[Sample], among: Collection[str] = SCALE_FREE, count: int = COUNT
) -> list[str]:
    """Select features: the strongest that are neither redundant nor weak."""
    names = [
        one.feature
        for one in correlations(samples)
        if one.feature in among and one.strength >= WEAK
    ]
    ranks = _ranks(table(samples, names))
    between = np.abs(_pearson(ranks, ranks))
    selection: list[int] = []
    for k in range(len(names)):
        if len(selection) < count and all(between[k, j] < ALIKE for j in selection):
            selection.append(k)
    return [names[k] for k in selection]


def _ranks(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.stats import rankdata  # noqa: PLC0415 - slow to import, and only needed here

    ranks: NDArray[np.float64] = rankdata(columns, axis=0)
    return ranks


def _pearson(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the correlation of each column of a with each of b; 0 where one is constant."""
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    norms = np.outer(np.sqrt((a**2).sum(axis=0)), np.sqrt((b**2).sum(axis=0)))
    return np.divide(a.T @ b, norms, out=np.zeros_like(norms), where=norms > 0)
