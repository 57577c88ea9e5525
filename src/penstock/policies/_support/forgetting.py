"""What bandits for a changing world have in common: the noise, and values tried again."""

import math

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.policies._support.arms import Arms, Floats
from penstock.policies._support.bandit import Bandit

TRUST = 2.0
"""Observations that the believed noise is worth."""
SHAPE = 4
"""Of the times between revisits: they vary by some 30%."""


class Forgetting(Bandit):
    """A base for bandits that measure distances by the noise of the rewards.

    Two values are as far apart as the noise lets one tell, whatever the unit, and no outlier
    squeezes a scale. A value that is not chosen is tried again after `revisit` observations on
    average, or later if such tries would take more than the share `cost` of the performance.
    """

    def __init__(
        self, *, revisit: float, cost: float, width: float, noise: float, seed: int
    ) -> None:
        super().__init__(seed=seed)
        self.revisit = self.checked("revisit", revisit, 0, np.inf)
        self.cost = self.checked("cost", cost, 1e-6, 1)
        self.width = self.checked("width", width, 0, np.inf)
        self.noise = self.checked("noise", noise, 0, 1)

    def checked(self, option: str, value: float, least: float, most: float) -> float:
        """Return the option's value; InputError: it is out of its range."""
        if not least <= value <= most:
            raise InputError(f"{self.name()}: {option} is {value}; give {least} to {most}")
        return value

    def upper(self, arms: Arms) -> Floats:
        """Return how good each arm may be: the highest is tried, unless one is due."""
        raise NotImplementedError

    def score(self, arms: Arms) -> Floats:
        """Return how good each arm may be; those due for a revisit come first."""
        return np.where(self.due(arms), np.inf, self.upper(arms))

    def due(self, arms: Arms) -> NDArray[np.bool_]:
        """Return which arms are tried again now.

        The hazard is that of Weibull's distribution: regular enough to promise something, irregular
        enough that values neglected together do not come together.
        """
        if not self.revisit:
            return np.zeros(arms.count.shape, dtype=bool)
        best = arms.mean.max(axis=1, keepdims=True)
        lost = (1 - arms.mean / np.where(best > 0, best, 1.0)).sum(axis=1, keepdims=True)
        scale = np.maximum(self.revisit, lost / self.cost) / math.gamma(1 + 1 / SHAPE)
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
