"""sliding-ucb: ucb1 on the last observations of a context alone (Garivier and Moulines 2011).

What is older than `window` observations of the context is forgotten, and a value that fell out is
tried again. The bound is mean + width noise sqrt(2 ln t / n), t being the observations in the
window and n the value's own; the noise is estimated from the rewards of all values, where the
authors take the range. Our answer to paper forwarding, 4.2.3, for a best value that changes.

Options `window`; `revisit`: a neglected value is tried again after so many observations on average,
or later if that would take more than the share `cost` of the performance, but when it fell out of
the window at the latest; 0: only then; `width`: of the bound; `noise`: that of one reward relative
to the mean, believed until some are seen; `seed`: of its draws.
"""

from penstock.policies._support.arms import Arms, Floats
from penstock.policies._support.forgetting import Forgetting


class SlidingUcb(Forgetting):
    """An upper confidence bound that forgets at once."""

    def __init__(
        self,
        *,
        window: int = 150,
        revisit: float = 110.0,
        cost: float = 0.0125,
        width: float = 0.3,
        noise: float = 0.05,
        seed: int = 0,
    ) -> None:
        super().__init__(revisit=revisit, cost=cost, width=width, noise=noise, seed=seed)
        self.memory = self.window = int(self.checked("window", window, 2, 1_000_000))

    def upper(self, arms: Arms) -> Floats:
        """Return the upper bounds."""
        return self.bound(arms)
