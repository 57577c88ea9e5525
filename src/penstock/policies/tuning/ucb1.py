"""ucb1: the value whose mean might be the highest (paper forwarding, 4.2.2, Equation 4.2).

Every value is tried once; then the one with the highest mean + sqrt(2 ln t / n), n of the t
observations being its own. The equation holds for rewards between 0 and 1: in bytes a second the
second term would mean nothing. So means are put on a scale from the least reward of the context so
far to the greatest. It never forgets: a world that changes is noticed late.

Option `seed`: ties are broken by it.
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
