"""ucb1: the value with the highest mean + sqrt(2 ln t / n) (paper forwarding, 4.2.2, Eq. 4.2).

Every value is tried once; then the one with the highest sum, n of the t observations being its own.
The paper adds the second term to the bandwidth itself. That is hundreds of MB/s, the term is some
units: after the first round it is nearly greedy. It settles soon, and does not follow a change of
the best value; scaled-ucb1 explores more.

Options `unit`: rewards are divided by it (1: as they are given; live rewards are bytes per second,
so 1e6 makes them MB/s, as in the paper); `seed`: of the draws that break ties.
"""

import numpy as np

from penstock.errors import InputError
from penstock.policies._support.arms import Arms, Floats
from penstock.policies._support.bandit import Bandit


class Ucb1(Bandit):
    """UCB1 as the paper prints it, without a scale of rewards."""

    def __init__(self, *, unit: float = 1.0, seed: int = 0) -> None:
        super().__init__(seed=seed)
        if not 0 < unit < np.inf:
            raise InputError(f"ucb1: unit is {unit}; give a number above zero")
        self.unit = unit

    def score(self, arms: Arms) -> Floats:
        """Return the upper bounds."""
        bound: Floats = arms.mean / self.unit + confidence(arms)
        return bound


def confidence(arms: Arms) -> Floats:
    """Return sqrt(2 ln t / n) of each arm."""
    width = 2.0 * np.log(np.maximum(arms.total, 1.0)) / np.maximum(arms.count, 1.0)
    term: Floats = np.sqrt(width)
    return term
