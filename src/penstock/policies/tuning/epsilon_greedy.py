"""epsilon-greedy: the best value so far, and now and then any value (thesis forwarding, 4.1).

With probability epsilon a value is drawn evenly from all, otherwise it is the one of the highest
mean (Equation 4.1, Algorithm 2). Estimates start at zero, so that after the first reward the others
are found by exploration alone. Paper forwarding, Section 4.1.

Options `epsilon`: how often it explores (0.07 in the paper's online runs); `seed`: of the draws.
"""

from typing import ClassVar

import numpy as np

from penstock.errors import InputError
from penstock.policies._support.arms import Arms, Floats
from penstock.policies._support.bandit import Bandit


class EpsilonGreedy(Bandit):
    """Explores at a constant rate."""

    sweep: ClassVar[bool] = False

    def __init__(self, *, epsilon: float = 0.07, seed: int = 0) -> None:
        super().__init__(seed=seed)
        if not 0 <= epsilon <= 1:
            raise InputError(f"epsilon-greedy: epsilon is {epsilon}; give 0 to 1")
        self.epsilon = epsilon

    def score(self, arms: Arms) -> Floats:
        """Return the means, or random numbers when it explores."""
        return np.where(arms.coin(2) < self.epsilon, arms.draw(3), arms.mean)
