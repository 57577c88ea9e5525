"""Model-guided adaptation of the test samples (paper write-models, IV-D and Figure 7).

With e = t' - t the model's error on the write as it is, the adapted write should take t'' - e, and
the gain is t / (t'' - e); the paper prints both inverted. What it costs to bring data to the
aggregators is left out, as in the paper. Beyond it, the adapted write is simulated too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from penstock.learn.write_models import advice, features
from penstock.learn.write_models.candidates import candidates
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.prediction import WriteModel
from penstock.learn.write_models.regressors import Regressor
from penstock.learn.write_models.samples import Sample
from penstock.model.write import Write
from penstock.sim.evaluate.write_path import WritePath
from penstock.sim.evaluate.write_samples import LARGE_BURSTS, MIB

LARGEST = LARGE_BURSTS[-1][1] * MIB
"""Bytes of a burst: a linear model that has seen none larger would promise anything."""
RUNS = 20
"""Simulated runs of a write before and after, whose means are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """How many times as fast, by the model and by the simulator."""

    promised: float
    simulated: float
    low: float = 1.0
    high: float = 1.0
    """The model's interval; the paper has none."""
    error: float = 0.0
    """The model's relative error on the write as it is."""
    typical: float = 1.0
    """Promised over simulated gain of the candidate in the middle of the predictions."""


def some(samples: Sequence[Sample], most: int) -> Sequence[Sample]:
    """Return at most `most` samples, evenly spaced."""
    return samples[:: max(1, len(samples) // most)][:most]


def gains(
    machine: Machine, model: Regressor, samples: Sequence[Sample], *, chance: np.random.Generator
) -> Iterator[Gain]:
    """Yield what the best adaptation of each sample would gain, as the paper has it."""
    path = WritePath(machine, chance)
    return (_gain(machine, model, sample, path) for sample in samples)


def advised(
    model: WriteModel, samples: Sequence[Sample], *, chance: np.random.Generator
) -> Iterator[Gain]:
    """Yield what 'penstock advise' would gain for each sample, its way to aggregators counted."""
    path = WritePath(model.machine, chance)
    for sample in samples:
        choice = advice.advise(model, sample.write, measured=sample.seconds)
        if not choice.worth_it:
            yield Gain(promised=1.0, simulated=1.0)
            continue
        before = _simulated(path, sample.write)
        after = _simulated(path, choice.best.write) + choice.best.moving
        gain = choice.gain
        yield Gain(promised=gain.expected, simulated=before / after, low=gain.low, high=gain.high)


def _gain(machine: Machine, model: Regressor, sample: Sample, path: WritePath) -> Gain:
    write, observed = sample.write, sample.seconds
    others = [w for w in candidates(machine, write) if w == write or w.burst <= LARGEST]
    predicted = model.predict(features.matrix(machine, others))
    now = float(predicted[0])
    left = predicted - (now - observed)
    possible = np.flatnonzero((predicted > 0) & (left > 0))
    best = int(possible[np.argmin(predicted[possible])]) if possible.size else 0
    error = now / observed - 1
    if best == 0 or left[best] >= observed:
        return Gain(promised=1.0, simulated=1.0, error=error)
    middle = int(possible[np.argsort(predicted[possible])[possible.size // 2]])
    before, after, between = (_simulated(path, w) for w in (write, others[best], others[middle]))
    return Gain(
        promised=observed / float(left[best]),
        simulated=before / after,
        error=error,
        typical=observed / float(left[middle]) * between / before,
    )


def _simulated(path: WritePath, write: Write) -> float:
    return fmean(path.run(write).seconds for _ in range(RUNS))
