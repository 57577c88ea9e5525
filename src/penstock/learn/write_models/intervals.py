"""Intervals that hold as often as they say (conformal prediction, on the logarithm of time).

Within the range of the samples: the quantile of errors on held-out samples, which has the stated
coverage whatever the distribution of errors, as long as new writes are like the samples. Outside:
models are fitted to the smaller scales alone and evaluated on the larger ones; the interval is the
quantile of their errors, never narrower than within the range, and grows with the distance in
octaves. Only the larger scales within the samples support it, and a prediction says that it is
outside.

The mean of many runs and the next run have different intervals: where jobs share the machine, runs
scatter about their mean by far more than a model errs. The interval of one run is the quantile of
errors on the runs themselves, every sample counting the same.

Writes below five seconds are used for fitting and not for errors (paper, IV-A): they hide in
caches, vary most, and matter least.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from penstock.learn.write_models.dataset import Dataset, Range, distance
from penstock.learn.write_models.parameters import Floats
from penstock.learn.write_models.samples import SHORTEST

Predictor = Callable[[Dataset], Floats]
"""Returns the logarithm of seconds."""
COVERAGE = 0.9
FOLDS = 5
FEWEST_SCALES = 4
"""Minimum number of scales to fit a model that is evaluated on larger ones."""
FEWEST_SAMPLES = 10
LEAST_HALF = 0.01
"""Minimum half width: 1%, however alike the samples are."""
GROWTH = 0.05
"""Relative growth of the interval per octave outside."""
WIDEST = 30.0
"""Maximum half width, in logarithms; it is already meaningless."""
UNKNOWN_GROWTH = 1.0
"""The same, where samples have too few scales to estimate it."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """Half widths in logarithms, for a mean: `half`, or `beyond (1 + growth x octaves)`."""

    coverage: float
    half: float
    beyond: float
    growth: float
    run: float = 0.0
    """Added for a single run."""

    def around(
        self, seconds: float, octaves: float, *, one_run: bool = False
    ) -> tuple[float, float]:
        """Return the ends of the interval of a mean, or of one run."""
        wide = self.beyond * (1 + self.growth * octaves) if octaves else self.half
        factor = math.exp(min(wide + (self.run if one_run else 0.0), WIDEST))
        return seconds / factor, seconds * factor


def quantile(errors: Sequence[float] | Floats, coverage: float) -> float:
    """Return the limit that the next error does not exceed, with that probability."""
    ordered = np.sort(np.asarray(errors, np.float64))
    place = math.ceil((len(ordered) + 1) * coverage)
    return float(ordered[min(place, len(ordered)) - 1])


def run_quantile(errors: Floats, samples: Dataset, coverage: float) -> float:
    """Return the limit for the error of the next run, each sample counting as one."""
    sizes = [
        np.abs(error + np.log(np.mean(times)) - np.log(times))
        for error, times in zip(errors, samples.times, strict=True)
    ]
    weights = np.concatenate([np.full(len(some), 1 / len(some)) for some in sizes])
    runs = np.concatenate(sizes)
    order = np.argsort(runs)
    place = int(np.searchsorted(np.cumsum(weights[order]), (len(sizes) + 1) * coverage))
    return float(runs[order[min(place, len(runs) - 1)]])


def calibrate(
    fit: Callable[[Dataset], Predictor],
    samples: Dataset,
    *,
    seed: int,
    coverage: float = COVERAGE,
) -> Interval:
    """Return the interval of the models that `fit` makes of samples."""
    rows = counted(samples)
    held_out = _held_out_errors(fit, samples, seed)[rows]
    half = max(quantile(np.abs(held_out), coverage), LEAST_HALF)
    run = max(run_quantile(held_out, samples.select(rows), coverage) - half, 0.0)
    widths: list[float] = []
    for smaller, larger in forward_splits(samples):
        errors = np.abs(fit(smaller)(larger) - np.log(larger.seconds))
        octaves = _octaves(smaller, larger)
        widths.extend((errors / (1 + GROWTH * octaves))[octaves > 0])
    beyond = max(quantile(widths, coverage), half) if widths else half
    growth = GROWTH if widths else UNKNOWN_GROWTH
    return Interval(coverage=coverage, half=half, beyond=beyond, growth=growth, run=run)


def forward_splits(samples: Dataset) -> Iterator[tuple[Dataset, Dataset]]:
    """Yield samples up to a scale and samples of larger ones, for every scale with enough."""
    for last in samples.distinct_scales[FEWEST_SCALES - 1 : -1]:
        small = samples.scales <= last
        large = ~small & counted(samples)
        if min(small.sum(), large.sum()) >= FEWEST_SAMPLES:
            yield samples.select(small), samples.select(large)


def counted(samples: Dataset) -> NDArray[np.bool_]:
    """Return which samples count for errors: the long ones, or all if too few are long."""
    long = samples.seconds >= SHORTEST
    return long if long.sum() >= FEWEST_SAMPLES else np.ones(len(samples), bool)


def _held_out_errors(fit: Callable[[Dataset], Predictor], samples: Dataset, seed: int) -> Floats:
    """Return the errors on samples of models that were fitted without them."""
    fold = np.random.default_rng(seed).permutation(len(samples)) % FOLDS
    errors = np.zeros(len(samples))
    for k in range(FOLDS):
        if not (fold == k).any():
            continue
        tested = samples.select(fold == k)
        errors[fold == k] = fit(samples.select(fold != k))(tested) - np.log(tested.seconds)
    return errors


def _octaves(fitted: Dataset, tested: Dataset) -> Floats:
    covered = Range.from_dataset(fitted)
    return np.array(
        [
            distance(covered.outside(tested.machine, write, tag))
            for write, tag in zip(tested.writes, tested.tags, strict=True)
        ]
    )
