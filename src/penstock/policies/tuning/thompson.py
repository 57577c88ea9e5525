"""thompson: a value is tried as often as it is likely to be the best, in a world that changes.

For every value a mean is drawn from what is believed of it, and the highest draw is tried (Thompson
1933). Believed is a normal distribution around the observed mean, of the noise of one reward over
the root of the count. Counts are discounted at every observation of the context (Raj and Kalyani
2017), so that a value not tried for long becomes uncertain again; and as its count falls below
`prior` its mean moves to that of the best: what is long unknown may be as good as any. That is what
brings back a value that was far behind, however small the noise. Our answer to paper forwarding,
4.2.3, where a change of the best value is left to exploration at a constant rate.

Options `discount`: what an observation is worth after another one; `prior`: observations that the
belief in an unknown value is worth; `noise`: that of one reward relative to the mean, believed
until some are seen; `seed`: of its draws.
"""

import numpy as np

from penstock.errors import InputError
from penstock.policies.tuning.arms import Arms, Floats
from penstock.policies.tuning.bandit import Bandit

TRUST = 2.0
"""Observations that the believed noise is worth."""


class Thompson(Bandit):
    """Gaussian Thompson sampling with discount."""

    def __init__(
        self,
        *,
        discount: float = 0.985,
        prior: float = 0.1,
        noise: float = 0.05,
        seed: int = 0,
    ) -> None:
        super().__init__(seed=seed)
        if not 0 < discount <= 1 or not prior > 0 or not noise > 0:
            raise InputError(
                f"thompson: discount is {discount}, prior {prior}, noise {noise}; "
                f"give above 0 to 1, and the others above 0"
            )
        self.discount, self.prior, self.noise = discount, prior, noise

    def score(self, arms: Arms) -> Floats:
        """Return a draw from what is believed of each arm."""
        spread = arms.noise(self.noise, TRUST) / np.sqrt(arms.count + self.prior)
        drawn: Floats = self.worth(arms) + spread * arms.normal(1)
        return drawn

    def worth(self, arms: Arms) -> Floats:
        """Return the mean that is believed of each arm."""
        best = arms.mean.max(axis=1, keepdims=True)
        believed: Floats = (arms.count * arms.mean + self.prior * best) / (arms.count + self.prior)
        return believed
