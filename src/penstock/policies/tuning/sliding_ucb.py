"""sliding-ucb: ucb1 on the latest observations of a context (Garivier and Moulines 2011).

Observations older than the last `window` of the context are forgotten, and a value without any is
tried again. The bound is mean + width noise sqrt(2 ln t / n), t being the observations in the
window and n the value's own; the noise is estimated from the rewards of all values, where the
authors use the range. Our answer to paper forwarding, 4.2.3, for a best value that changes.

Options `window`; `revisit`: observations, on average, until a neglected value is tried again (0:
once it has left the window), or more if such trials would cost more than the fraction `cost` of the
performance; `width`: of the bound; `noise`: assumed noise of one reward relative to the mean, until
there are observations; `seed`: of the draws.
"""

from dataclasses import dataclass

from penstock.policies._support.bandit import ForgettingBandit


@dataclass(kw_only=True, eq=False, repr=False)
class SlidingUcb(ForgettingBandit):
    """An upper confidence bound that forgets abruptly."""

    window: int = 150

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_range("window", self.window, 2, 1_000_000)
        self.memory = self.window = int(self.window)
