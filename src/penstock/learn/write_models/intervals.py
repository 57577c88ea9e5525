"""Intervals that hold as often as they say (conformal prediction, on the logarithm of time).

Within the range of the samples: the quantile of errors on samples that were left out, which covers
as often as it says whatever the errors are like, as long as new writes are like the samples.
Outside: models are made of the smaller scales alone and asked for the larger ones; the interval is
the quantile of their errors, never narrower than within the range, and grows with the octaves
between. Nothing vouches for it but the larger scales within the samples, and a prediction says that
it is outside.

An average of many runs is one thing, the next run another: runs scatter about their mean, by far
more than a model errs where others share the machine. Both have an interval; that of one run is the
quantile of errors on the runs themselves, every sample counting the same.

Writes below five seconds are learnt from and not judged by (paper, IV-A): they hide in caches, vary
most, and matter least.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from penstock.learn.write_models import ranges, table
from penstock.learn.write_models.arrays import Floats
from penstock.learn.write_models.ranges import Range
from penstock.learn.write_models.samples import SHORTEST
from penstock.learn.write_models.table import Table

Predictor = Callable[[Table], Floats]
"""Gives the logarithm of seconds."""
COVERAGE = 0.9
FOLDS = 5
FEWEST_SCALES = 4
"""That a model is made of which is asked for larger ones."""
FEWEST_SAMPLES = 10
LEAST_HALF = 0.01
"""Of the interval: no prediction is surer than a percent, however alike the samples are."""
GROWTH = 0.05
"""Of the interval an octave: what is further outside is known less."""
WIDEST = 30.0
"""Half an interval, in logarithms: 30,000 years either way of a second say nothing already."""
UNKNOWN_GROWTH = 1.0
"""Of the interval an octave, where samples have too few scales to say."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """Half its width in logarithms, for a mean: `half`, or `beyond (1 + growth x octaves)`."""

    coverage: float
    half: float
    beyond: float
    growth: float
    run: float = 0.0
    """Added for a single run."""

    def around(
        self, seconds: float, octaves: float, *, one_run: bool = False
    ) -> tuple[float, float]:
        """Return the ends of the interval, of a mean or of one run."""
        wide = self.beyond * (1 + self.growth * octaves) if octaves else self.half
        factor = math.exp(min(wide + (self.run if one_run else 0.0), WIDEST))
        return seconds / factor, seconds * factor


def quantile(errors: Sequence[float] | Floats, coverage: float) -> float:
    """Return what the next error is at most, with that probability."""
    ordered = np.sort(np.asarray(errors, np.float64))
    place = math.ceil((len(ordered) + 1) * coverage)
    return float(ordered[min(place, len(ordered)) - 1])


def quantile_of_runs(errors: Floats, samples: Table, coverage: float) -> float:
    """Return what the error of the next run is at most, each sample counting as one."""
    sizes = [
        np.abs(error + np.log(np.mean(times)) - np.log(times))
        for error, times in zip(errors, samples.times, strict=True)
    ]
    weights = np.concatenate([np.full(len(some), 1 / len(some)) for some in sizes])
    runs = np.concatenate(sizes)
    order = np.argsort(runs)
    place = int(np.searchsorted(np.cumsum(weights[order]), (len(sizes) + 1) * coverage))
    return float(runs[order[min(place, len(runs) - 1)]])


def calibrated(
    fit: Callable[[Table], Predictor],
    samples: Table,
    *,
    seed: int,
    coverage: float = COVERAGE,
) -> Interval:
    """Return the interval of the models that `fit` makes of samples."""
    kept = judged(samples)
    left_out = _left_out(fit, samples, seed)[kept]
    half = max(quantile(np.abs(left_out), coverage), LEAST_HALF)
    run = max(quantile_of_runs(left_out, samples.where(kept), coverage) - half, 0.0)
    needed: list[float] = []
    for smaller, larger in forward(samples):
        errors = np.abs(fit(smaller)(larger) - np.log(larger.seconds))
        octaves = _octaves(smaller, larger)
        needed.extend((errors / (1 + GROWTH * octaves))[octaves > 0])
    beyond = max(quantile(needed, coverage), half) if needed else half
    growth = GROWTH if needed else UNKNOWN_GROWTH
    return Interval(coverage=coverage, half=half, beyond=beyond, growth=growth, run=run)


def forward(samples: Table) -> Iterator[tuple[Table, Table]]:
    """Yield all samples up to a scale, and those of larger ones, for every scale that allows it."""
    scales = table.scales(samples)
    for last in scales[FEWEST_SCALES - 1 : -1]:
        small = samples.scales <= last
        large = ~small & judged(samples)
        if min(small.sum(), large.sum()) >= FEWEST_SAMPLES:
            yield samples.where(small), samples.where(large)


def judged(samples: Table) -> NDArray[np.bool_]:
    """Return which samples count; all, where next to none is long enough."""
    long = samples.seconds >= SHORTEST
    return long if long.sum() >= FEWEST_SAMPLES else np.ones(len(samples), bool)


def _left_out(fit: Callable[[Table], Predictor], samples: Table, seed: int) -> Floats:
    """Return the errors on samples by models that were made without them."""
    fold = np.random.default_rng(seed).permutation(len(samples)) % FOLDS
    errors = np.zeros(len(samples))
    for k in range(FOLDS):
        if not (fold == k).any():
            continue
        tested = samples.where(fold == k)
        errors[fold == k] = fit(samples.where(fold != k))(tested) - np.log(tested.seconds)
    return errors


def _octaves(seen: Table, asked: Table) -> Floats:
    known = Range.of(seen)
    return np.array(
        [
            ranges.distance(known.outside(asked.machine, write, tag))
            for write, tag in zip(asked.writes, asked.tags, strict=True)
        ]
    )
