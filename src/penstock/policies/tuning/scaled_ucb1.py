"""scaled-ucb1: ucb1 on a scale of 0 to 1, for which its bound was derived (Auer et al. 2002).

Every value is tried once; then the one with the highest q + sqrt(2 ln t / n), n of the t
observations being its own. q is the mean on a scale from the least reward of the context so far to
the greatest; paper forwarding prints the equation (4.2) without a scale. It explores far more than
ucb1, and like it never forgets: it notices a value that becomes better, and not that the best one
became worse.

Option `seed`: of the draws that break ties.
"""

from penstock.policies._support.arms import Arms, Floats
from penstock.policies._support.bandit import Bandit
from penstock.policies.tuning.ucb1 import confidence


class ScaledUcb1(Bandit):
    """The upper confidence bound of Auer, Cesa-Bianchi and Fischer."""

    def score(self, arms: Arms) -> Floats:
        """Return the upper bounds."""
        bound: Floats = arms.scaled + confidence(arms)
        return bound
