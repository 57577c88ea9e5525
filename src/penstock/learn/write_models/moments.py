"""First and second moments of samples: all that linear models need, and they add up.

The moments of a union of sets are found from those of the sets, so that a model search fits the 255
unions of eight scales without looking at a sample again. From moments a few rows are made that have
the same moments: whatever fits those fits the samples, exactly.
"""

import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from penstock.learn.write_models.arrays import Floats


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Moments:
    """Of features and target: count, means, and products of what is left without them."""

    count: int
    mean: Floats
    target: float
    products: Floats
    """Of the features with each other and, in the last row and column, with the target."""

    @classmethod
    def of(cls, matrix: Floats, target: Floats) -> "Moments":
        """Return the moments of samples."""
        mean, middle = matrix.mean(axis=0), float(target.mean())
        centred = np.column_stack([matrix - mean, target - middle])
        return cls(
            count=len(matrix), mean=mean, target=middle, products=np.asarray(centred.T @ centred)
        )

    def __add__(self, other: "Moments") -> "Moments":
        count = self.count + other.count
        apart = np.append(other.mean - self.mean, other.target - self.target)
        part = other.count / count
        return Moments(
            count=count,
            mean=self.mean + part * apart[:-1],
            target=self.target + part * float(apart[-1]),
            products=self.products + other.products + (self.count * part) * np.outer(apart, apart),
        )

    @property
    def scale(self) -> Floats:
        """Return the standard deviation of each feature; 0 where it is always the same."""
        spread = np.sqrt(np.diag(self.products)[:-1] / self.count)
        return np.where(spread > 1e-9 * np.abs(self.mean), spread, 0.0)

    def rows(self) -> tuple[Floats, Floats]:
        """Return rows of standardised features, and their target, with these moments."""
        scale = np.append(self.scale, 1.0)
        by = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        covariance = self.products * np.outer(by, by) / self.count
        sizes, axes = np.linalg.eigh(covariance)
        root = axes * np.sqrt(np.clip(sizes, 0.0, None) * len(sizes))
        return np.ascontiguousarray(root.T[:, :-1]), np.ascontiguousarray(root.T[:, -1])

    def raw(self, coefficients: Floats) -> Floats:
        """Return coefficients of standardised features in the features' own units."""
        scale = self.scale
        return np.divide(coefficients, scale, out=np.zeros_like(scale), where=scale > 0)


def together(parts: Iterable[Moments]) -> Moments:
    """Return the moments of all parts."""
    return functools.reduce(operator.add, parts)
