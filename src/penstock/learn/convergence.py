"""When identical runs have been repeated often enough (paper write-models, III-D, Formula 2).

By the central limit theorem the mean t of r runs is within a fraction zeta of the expected value,
with confidence 1 - alpha, once z(alpha/2) sigma / sqrt(r - 1) <= zeta t. The paper prints n for r.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Convergence:
    """The rule: the required confidence, and the relative error that is accepted."""

    confidence: float = 0.95
    within: float = 0.1
    """zeta; the paper states neither value, these two are ours."""
    least: int = 3
    """Minimum number of runs: two runs may agree by chance."""

    def error(self, times: Sequence[float]) -> float:
        """Return the relative error of the mean; infinite for fewer than two runs."""
        if len(times) < 2:
            return math.inf
        z = statistics.NormalDist().inv_cdf(0.5 + self.confidence / 2)
        mean = statistics.fmean(times)
        sigma = statistics.pstdev(times, mean)
        return z * sigma / math.sqrt(len(times) - 1) / mean if mean > 0 else math.inf

    def reached(self, times: Sequence[float]) -> bool:
        """Return True if these runs are enough."""
        return len(times) >= self.least and self.error(times) <= self.within
