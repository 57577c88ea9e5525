"""decaying-epsilon: epsilon-greedy that explores ever less (paper forwarding, 4.2.2, as outlook).

After t observations of a context with k values, it explores with probability min(1, rate k / t):
every value is tried in the beginning, and about `rate` times as often again whenever the number
of observations grows by a factor of e (Auer, Cesa-Bianchi and Fischer 2002, Figure 3).

Options `rate`; `floor`: the lowest probability to explore; `seed`: of the draws.
"""

import numpy as np

from penstock.errors import InputError
from penstock.policies._support.arms import Arms, Floats
from penstock.policies._support.bandit import Bandit


class DecayingEpsilon(Bandit):
    """Explores at a rate that falls with the observations."""

    def __init__(self, *, rate: float = 1.0, floor: float = 0.0, seed: int = 0) -> None:
        super().__init__(seed=seed)
        if not rate >= 0 or not 0 <= floor <= 1:
            raise InputError(
                f"decaying-epsilon: rate is {rate}, floor {floor}; give 0 or more, and 0 to 1"
            )
        self.rate, self.floor = rate, floor

    def score(self, arms: Arms) -> Floats:
        """Return the means, or random numbers when it explores."""
        k = arms.mean.shape[1]
        epsilon = np.maximum(self.rate * k / np.maximum(arms.seen, 1), self.floor)[:, None]
        return np.where(arms.coin(2) < epsilon, arms.draw(3), arms.mean)
