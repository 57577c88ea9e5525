"""Means over workloads, and how sure they are.

Single runs say little (fair-share is numerically chaotic: a change in the twelfth digit moves its
figures by per cents), so figures are means over workloads. All policies run the same workloads, so
differences are computed workload by workload: the bootstrap draws whole workloads.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Floats = NDArray[np.float64]
RESAMPLES = 2000
CONFIDENCE = 0.95
WEIGHTS_AT_ONCE = 1 << 21
"""Weights of resamples that are in memory at a time: 16 MiB."""
MOST_WORKLOADS = 1000
"""Workloads that one setting is compared on at most: ten times as many would make an interval only
three times narrower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure and its confidence interval."""

    value: float
    low: float
    high: float

    def __format__(self, form: str) -> str:
        """Return "value [low, high]"; a lone workload has no interval. "%" is as for a float."""
        value, low, high = (f"{v:{form}}" for v in (self.value, self.low, self.high))
        ends = f" [{low}, {high}]".replace("%", "")
        return value if self.low == self.high or math.isnan(self.low) else value + ends

    def __sub__(self, other: float) -> "Estimate":
        return Estimate(value=self.value - other, low=self.low - other, high=self.high - other)

    def __neg__(self) -> "Estimate":
        return Estimate(value=-self.value, low=-self.high, high=-self.low)

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval is above zero; never without an interval."""
        return self.low > 0

    @property
    def below_zero(self) -> bool:
        """Whether the whole interval is below zero; never without an interval."""
        return self.high < 0


def bootstrap(
    statistic: Callable[..., Floats],
    *samples: Floats,
    interval: Literal["percentile", "t"] = "percentile",
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Estimate a statistic of paired samples, each one row per workload.

    `statistic` gets the means over workloads, one entry (or row) per resample. The interval is
    between percentiles of the resamples, or t: the standard error of the resamples, corrected for
    the number n of workloads, times Student's t for n - 1. Percentiles of few workloads are too
    narrow (with 5 they hold 84% of the time, not 95%). With a single workload t is NaN: one run
    says nothing of how far others lie.
    """
    n = len(samples[0])
    value = float(statistic(*(sample.mean(axis=0, keepdims=True) for sample in samples))[0])
    spread = statistic(*_resampled(samples))
    if interval == "percentile":
        low, high = np.quantile(spread, [(1 - confidence) / 2, (1 + confidence) / 2])
        return Estimate(value=value, low=float(low), high=float(high))
    if n < 2 or not np.isfinite(spread).all():
        return Estimate(value=value, low=math.nan, high=math.nan)
    error = float(spread.std()) * math.sqrt(n / (n - 1))
    reach = float(stdtrit(n - 1, (1 + confidence) / 2)) * error
    return Estimate(value=value, low=value - reach, high=value + reach)


def paired_gain(
    values: Floats, base: Floats, *, higher_is_better: bool, tests: int = 1
) -> Estimate:
    """Return by how much the mean of `values` is better than that of `base`, as a fraction of it.

    0.1 is ten per cent better. Each entry is of one workload, the same one in both. Of figures that
    are never below zero the interval ends where the gain does: at 1 where lower is better (nothing
    is left), at -1 where higher is. The intervals of several `tests` hold all at once in 95 of 100
    cases, and each alone more often (Bonferroni).
    """
    sign = 1.0 if higher_is_better else -1.0

    def gain(of_values: Floats, of_base: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            # Plus zero: no gain is 0, not -0.
            relative: Floats = sign * (of_values / of_base - 1) + 0.0
        return relative

    confidence = 1 - (1 - CONFIDENCE) / tests
    estimate = bootstrap(gain, values, base, interval="t", confidence=confidence)
    if not math.isfinite(estimate.value):
        return Estimate(value=math.nan, low=math.nan, high=math.nan)
    if min(values.min(), base.min()) < 0 or math.isnan(estimate.low):
        return estimate
    if higher_is_better:
        return replace(estimate, low=max(estimate.low, -1.0))
    return replace(estimate, high=min(estimate.high, 1.0))


def _resampled(samples: Sequence[Floats]) -> list[Floats]:
    """Return the samples' means over workloads in each resample."""
    n = len(samples[0])
    rows = WEIGHTS_AT_ONCE // n
    if rows >= RESAMPLES:
        weights = _weights(n)
        return [weights @ sample for sample in samples]
    rng = np.random.default_rng(n)
    sizes = [min(max(1, rows), RESAMPLES - k) for k in range(0, RESAMPLES, max(1, rows))]
    blocks = [[draws @ sample for sample in samples] for draws in (_draw(rng, n, k) for k in sizes)]
    return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]


@lru_cache(maxsize=4)
def _weights(n: int) -> Floats:
    """Return the weight of each of n workloads in each resample."""
    return _draw(np.random.default_rng(n), n, RESAMPLES)


def _draw(rng: np.random.Generator, n: int, resamples: int) -> Floats:
    draws: Floats = rng.multinomial(n, np.full(n, 1 / n), resamples) / n
    return draws
