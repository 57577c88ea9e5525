"""thompson: a value is tried as often as it is likely to be the best, in a world that changes.

For every value a mean is drawn from what is believed of it, and the highest draw is tried (Thompson
1933). Believed is a normal distribution around the observed mean; its deviation is the noise of one
reward, estimated from all values of the context, over the root of the count. Counts are discounted
at every observation of the context (Raj and Kalyani 2017), so that what is long past weighs little.
Where the noise is small that alone would not bring back a value that was far behind: `revisit`
does. Our answer to paper forwarding, 4.2.3, where a change of the best value is left to exploration
at a constant rate.

Options `discount`: what an observation is worth after another one of its context; `revisit`: a
neglected value is tried again after so many on average, 0 for never, or later if that would take
more than the share `cost` of the performance; `width`: of the draws, 1 is what is believed;
`noise`: that of one reward relative to the mean, believed until some are seen; `seed`: of its
draws.
"""

import numpy as np

from penstock.policies._support.arms import Arms, Floats
from penstock.policies._support.forgetting import Forgetting


class Thompson(Forgetting):
    """Gaussian Thompson sampling with discount."""

    def __init__(
        self,
        *,
        discount: float = 0.99,
        revisit: float = 110.0,
        cost: float = 0.0125,
        width: float = 0.5,
        noise: float = 0.05,
        seed: int = 0,
    ) -> None:
        super().__init__(revisit=revisit, cost=cost, width=width, noise=noise, seed=seed)
        self.discount = self.checked("discount", discount, 0.5, 1)

    def upper(self, arms: Arms) -> Floats:
        """Return a draw from what is believed of each arm."""
        spread = self.width * self.deviation(arms) / np.sqrt(np.maximum(arms.count, 1e-9))
        drawn: Floats = arms.mean + spread * arms.normal(2)
        return drawn
