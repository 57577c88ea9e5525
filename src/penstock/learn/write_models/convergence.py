"""When identical runs have been repeated often enough (paper write-models, III-D, Formula 2).

By the central limit theorem the mean t of r runs is within a part zeta of the expected one, with a
confidence of 1 - alpha, once z(alpha/2) sigma / sqrt(r - 1) <= zeta t. The paper prints n for r.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Convergence:
    """The rule: with which confidence the mean is to be within which part of the truth."""

    confidence: float = 0.95
    within: float = 0.1
    """zeta; the paper prints neither of the two, these are ours."""
    least: int = 3
    """Runs: two that happen to agree say nothing."""

    def error(self, times: Sequence[float]) -> float:
        """Return the part of the mean by which it may be wrong; infinite for too few runs."""
        if len(times) < 2:
            return math.inf
        z = statistics.NormalDist().inv_cdf(0.5 + self.confidence / 2)
        mean = statistics.fmean(times)
        sigma = statistics.pstdev(times, mean)
        return z * sigma / math.sqrt(len(times) - 1) / mean if mean > 0 else math.inf

    def reached(self, times: Sequence[float]) -> bool:
        """Say whether that many runs are enough."""
        return len(times) >= self.least and self.error(times) <= self.within
