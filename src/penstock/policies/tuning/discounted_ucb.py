"""discounted-ucb: ucb1 on counts that fade (Kocsis and Szepesvari 2006; Garivier and Moulines).

Every observation of a context discounts the earlier ones. The bound is mean + width noise
sqrt(2 ln t / n) on discounted counts, t being their sum; the noise is estimated from the rewards of
all values, where the authors take the range. Our answer to paper forwarding, 4.2.3, for a best
value that changes.

Options `discount`: what an observation is worth after another one of its context; `revisit`: a
neglected value is tried again after so many on average, 0 for never, or later if that would take
more than the share `cost` of the performance; `width`: of the bound; `noise`: that of one reward
relative to the mean, believed until some are seen; `seed`: of its draws.
"""

from penstock.policies._support.arms import Arms, Floats
from penstock.policies._support.forgetting import Forgetting


class DiscountedUcb(Forgetting):
    """An upper confidence bound that forgets by and by."""

    def __init__(
        self,
        *,
        discount: float = 0.99,
        revisit: float = 110.0,
        cost: float = 0.0125,
        width: float = 0.3,
        noise: float = 0.05,
        seed: int = 0,
    ) -> None:
        super().__init__(revisit=revisit, cost=cost, width=width, noise=noise, seed=seed)
        self.discount = self.checked("discount", discount, 0.5, 1)

    def upper(self, arms: Arms) -> Floats:
        """Return the upper bounds."""
        return self.bound(arms)
