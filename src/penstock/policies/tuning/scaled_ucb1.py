"""ucb1: the value whose mean might be the highest (paper forwarding, 4.2.2, Equation 4.2).

Every value is tried once; then the one with the highest mean + sqrt(2 ln t / n), n of the t
observations being its own. The equation holds for rewards between 0 and 1, so means are put on a
scale from the least reward of the context so far to the greatest. It never forgets: a change of the
best value is noticed late.

Option `seed`: of the draws that break ties.
"""

import numpy as np

from penstock.policies._support.arms import Arms, Floats
from penstock.policies._support.bandit import Bandit


class Ucb1(Bandit):
    """The upper confidence bound of Auer, Cesa-Bianchi and Fischer."""

    def score(self, arms: Arms) -> Floats:
        """Return the upper bounds."""
        width = 2.0 * np.log(np.maximum(arms.total, 1.0)) / np.maximum(arms.count, 1.0)
        bound: Floats = arms.scaled + np.sqrt(width)
        return bound
