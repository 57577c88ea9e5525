"""discounted-ucb: ucb1 on counts that fade (Kocsis and Szepesvari 2006; Garivier and Moulines).

Every observation of a context discounts the earlier ones. The bound is mean + width noise
sqrt(2 ln t / n) on discounted counts, with the noise estimated from the rewards as in sliding-ucb.
A value whose count has faded below `least` is tried again, however far behind it was. Our answer to
paper forwarding, 4.2.3, for a best value that changes.

Options `discount`: what an observation is worth after another one; `width`: of the bound; `least`;
`noise`: that of one reward relative to the mean, believed until some are seen; `seed`: ties are
broken by it.
"""

import numpy as np

from penstock.errors import InputError
from penstock.policies.tuning.arms import Arms, Floats
from penstock.policies.tuning.bandit import Bandit

TRUST = 2.0
"""Observations that the believed noise is worth."""


class DiscountedUcb(Bandit):
    """An upper confidence bound that forgets by and by."""

    def __init__(
        self,
        *,
        discount: float = 0.985,
        width: float = 0.7,
        least: float = 0.2,
        noise: float = 0.05,
        seed: int = 0,
    ) -> None:
        super().__init__(seed=seed)
        if not 0 < discount <= 1 or not width >= 0 or not 0 <= least < 1 or not noise > 0:
            raise InputError(
                f"discounted-ucb: discount is {discount}, width {width}, least {least}, noise "
                f"{noise}; give above 0 to 1, 0 or more, 0 to below 1, above 0"
            )
        self.discount, self.width, self.least, self.noise = discount, width, least, noise

    def score(self, arms: Arms) -> Floats:
        """Return the upper bounds."""
        n = np.maximum(arms.count, 1e-9)
        width = 2.0 * np.log(np.maximum(arms.total, 1.0)) / n
        bound: Floats = arms.mean + self.width * arms.noise(self.noise, TRUST) * np.sqrt(width)
        return np.where(arms.count < self.least, np.inf, bound)
