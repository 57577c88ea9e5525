"""sliding-ucb: ucb1 on the last observations of a context alone (Garivier and Moulines 2011).

What is older than `window` observations is forgotten, so that a value that fell out of it is tried
again: no change goes unnoticed for longer than that. The bound is mean + width noise
sqrt(2 ln t / n), t being the observations in the window and n the value's own. The noise is
estimated from the rewards, pooled over the values: two values are as far apart as the noise lets
one tell, whatever the unit, and an outlier does not squeeze the scale as it does with ucb1. Our
answer to paper forwarding, 4.2.3, for a best value that changes.

Options `window`: observations of a context that count; `width`: of the bound; `noise`: that of one
reward relative to the mean, believed until some are seen; `seed`: ties are broken by it.
"""

import numpy as np

from penstock.errors import InputError
from penstock.policies.tuning.arms import Arms, Floats
from penstock.policies.tuning.bandit import Bandit

TRUST = 2.0
"""Observations that the believed noise is worth."""


class SlidingUcb(Bandit):
    """An upper confidence bound that forgets at once."""

    def __init__(
        self, *, window: int = 120, width: float = 0.7, noise: float = 0.05, seed: int = 0
    ) -> None:
        super().__init__(seed=seed)
        if window < 2 or not width >= 0 or not noise > 0:
            raise InputError(
                f"sliding-ucb: window is {window}, width {width}, noise {noise}; "
                f"give 2 or more, 0 or more, above 0"
            )
        self.memory = self.window = window
        self.width, self.noise = width, noise

    def score(self, arms: Arms) -> Floats:
        """Return the upper bounds."""
        width = 2.0 * np.log(np.maximum(arms.total, 1.0)) / np.maximum(arms.count, 1.0)
        bound: Floats = arms.mean + self.width * arms.noise(self.noise, TRUST) * np.sqrt(width)
        return bound
