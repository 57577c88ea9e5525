"""thompson: tries a value as often as it is likely to be the best, in a changing environment.

For every value a mean is drawn from its posterior, and the highest draw is tried (Thompson 1933).
The posterior is a normal distribution around the observed mean; its deviation is the noise of one
reward, estimated from all values of the context, over the root of the count. Counts are discounted
at every observation of the context (Raj and Kalyani 2017), so that old observations weigh little.
With little noise that alone would not bring back a value that was far behind: `revisit` does. Our
answer to paper forwarding, 4.2.3, where a constant rate of exploration finds a new best value.

Options `discount`: the weight of an observation after the next one of its context; `revisit`:
observations, on average, until a neglected value is tried again (0: never), or more if such trials
would cost more than the fraction `cost` of the performance; `width`: of the draws, 1 is the
posterior; `noise`: assumed noise of one reward relative to the mean, until there are observations;
`seed`: of the draws.
"""

from dataclasses import dataclass

import numpy as np

from penstock.policies._support.arms import Arms, Floats
from penstock.policies._support.bandit import ForgettingBandit


@dataclass(kw_only=True, eq=False, repr=False)
class Thompson(ForgettingBandit):
    """Gaussian Thompson sampling with discount."""

    discount: float = 0.99
    width: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_range("discount", self.discount, 0.5, 1)

    def upper(self, arms: Arms) -> Floats:
        """Return a draw from the posterior of each arm."""
        spread = self.width * self.deviation(arms) / np.sqrt(np.maximum(arms.count, 1e-9))
        draw: Floats = arms.mean + spread * arms.normal(2)
        return draw
