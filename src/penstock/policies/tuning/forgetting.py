"""What bandits for a changing world have in common: the noise, and values tried again."""

import numpy as np

from penstock.errors import InputError
from penstock.policies.tuning.arms import Arms, Floats
from penstock.policies.tuning.bandit import Bandit

TRUST = 2.0
"""Observations that the believed noise is worth."""


class Forgetting(Bandit):
    """A base for bandits that measure distances by the noise of the rewards.

    Two values are as far apart as the noise lets one tell, whatever the unit, and no outlier
    squeezes a scale.
    """

    def __init__(self, *, revisit: float, width: float, noise: float, seed: int) -> None:
        super().__init__(seed=seed)
        self.revisit = self.checked("revisit", revisit, 0, np.inf)
        self.width = self.checked("width", width, 0, np.inf)
        self.noise = self.checked("noise", noise, 0, 1)

    def checked(self, option: str, value: float, least: float, most: float) -> float:
        """Return the option's value; InputError: it is out of its range."""
        if not least <= value <= most:
            raise InputError(f"{self.name()}: {option} is {value}; give {least} to {most}")
        return value

    def deviation(self, arms: Arms) -> Floats:
        """Return the standard deviation of one reward: a column."""
        return arms.noise(self.noise, TRUST)

    def bound(self, arms: Arms) -> Floats:
        """Return the upper confidence bounds: mean + width noise sqrt(2 ln t / n)."""
        share = 2.0 * np.log(np.maximum(arms.total, 1.0)) / np.maximum(arms.count, 1e-9)
        bound: Floats = arms.mean + self.width * self.deviation(arms) * np.sqrt(share)
        return bound
