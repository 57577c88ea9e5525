"""A base for bandits in a changing environment: noise estimates, and values tried again."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.policies._support.arms import Arms, Floats
from penstock.policies._support.bandit import Bandit

TRUST = 2.0
"""The weight of the assumed noise, in observations."""
SHAPE = 4
"""Shape of the distribution of times between revisits: they vary by some 30%."""


@dataclass(kw_only=True, eq=False, repr=False)
class ForgettingBandit(Bandit):
    """A bandit that measures differences in units of the rewards' noise, and revisits values.

    The noise is estimated from all values of a context, so that no unit and no outlier matters. A
    value that is not chosen is tried again after `revisit` observations on average (0: never), or
    later if such trials would cost more than the fraction `cost` of the performance. `width` scales
    the confidence bound or the draws; `noise` is the assumed noise of one reward relative to the
    mean, until there are observations; `seed` is that of the draws.
    """

    revisit: float = 110.0
    cost: float = 0.0125
    width: float = 0.3
    noise: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        super().__init__(seed=self.seed)
        self.check_range("revisit", self.revisit, 0, np.inf)
        self.check_range("cost", self.cost, 1e-6, 1)
        self.check_range("width", self.width, 0, np.inf)
        self.check_range("noise", self.noise, 0, 1)

    def check_range(self, option: str, value: float, least: float, most: float) -> None:
        """Raise InputError if an option is out of its range."""
        if not least <= value <= most:
            raise InputError(f"{self.name()}: {option} is {value}; give {least} to {most}")

    def upper(self, arms: Arms) -> Floats:
        """Return an optimistic estimate of each arm: the highest is tried, unless one is due."""
        return self.bound(arms)

    def score(self, arms: Arms) -> Floats:
        """Return the optimistic estimates; arms that are due for a revisit come first."""
        return np.where(self.due(arms), np.inf, self.upper(arms))

    def due(self, arms: Arms) -> NDArray[np.bool_]:
        """Return which arms are due for a revisit.

        The hazard is that of a Weibull distribution: regular enough to guarantee revisits,
        irregular enough that values neglected together are not revisited together.
        """
        if not self.revisit:
            return np.zeros(arms.count.shape, dtype=bool)
        best = arms.mean.max(axis=1, keepdims=True)
        loss = (1 - arms.mean / np.where(best > 0, best, 1.0)).sum(axis=1, keepdims=True)
        scale = np.maximum(self.revisit, loss / self.cost) / math.gamma(1 + 1 / SHAPE)
        due: NDArray[np.bool_] = arms.draw(1) < SHAPE / scale * (arms.age / scale) ** (SHAPE - 1)
        return due

    def deviation(self, arms: Arms) -> Floats:
        """Return the standard deviation of one reward: a column."""
        return arms.noise(self.noise, TRUST)

    def bound(self, arms: Arms) -> Floats:
        """Return the upper confidence bounds: mean + width noise sqrt(2 ln t / n)."""
        share = 2.0 * np.log(np.maximum(arms.total, 1.0)) / np.maximum(arms.count, 1e-9)
        bound: Floats = arms.mean + self.width * self.deviation(arms) * np.sqrt(share)
        return bound
