"""discounted-ucb: ucb1 with discounted counts (Kocsis and Szepesvari 2006; Garivier and Moulines).

Every observation of a context discounts the earlier ones. The bound is mean + width noise
sqrt(2 ln t / n) with discounted counts, t being their sum; the noise is estimated from the rewards
of all values, where the authors use the range. Our answer to paper forwarding, 4.2.3, for a best
value that changes.

Options `discount`: the weight of an observation after the next one of its context; `revisit`:
observations, on average, until a neglected value is tried again (0: never), or more if such trials
would cost more than the fraction `cost` of the performance; `width`: of the bound; `noise`: assumed
noise of one reward relative to the mean, until there are observations; `seed`: of the draws.
"""

from dataclasses import dataclass

from penstock.policies._support.bandit import ForgettingBandit


@dataclass(kw_only=True, eq=False, repr=False)
class DiscountedUcb(ForgettingBandit):
    """An upper confidence bound that forgets gradually."""

    discount: float = 0.99

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_range("discount", self.discount, 0.5, 1)
