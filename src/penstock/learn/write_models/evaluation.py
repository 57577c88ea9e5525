"""How good a model is on samples: relative errors, shares within limits, what intervals cover.

Paper write-models, IV-C: the relative error is (t' - t) / t, of the mean t of a sample's runs; it
counts samples within 0.2 and 0.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError
from penstock.learn.write_models.prediction import WriteModel
from penstock.learn.write_models.samples import Sample

WITHIN = (0.2, 0.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What came out for some samples."""

    samples: int
    median_error: float
    """Of the errors' sizes."""
    within: dict[float, float]
    """Share of samples whose error is at most that."""
    covered: float
    """Share of samples in their interval; it should be `coverage`."""
    coverage: float
    outside: int
    """Samples of which the model said that it had not seen their like."""


def evaluate(model: WriteModel, samples: Sequence[Sample]) -> Scores:
    """Return how good a model is on samples of its machine."""
    if not samples:
        raise InputError("no samples to judge a model by; give some")
    other = next((one.machine for one in samples if one.machine != model.machine.name), None)
    if other is not None:
        raise InputError(f"a sample is of {other!r}, the model of {model.machine.name!r}")
    told = [model.predict(one.write) for one in samples]
    true = np.array([one.seconds for one in samples])
    errors = np.abs(np.array([one.seconds for one in told]) / true - 1)
    inside = [p.low <= t <= p.high for p, t in zip(told, true, strict=True)]
    return Scores(
        samples=len(samples),
        median_error=float(np.median(errors)),
        within={limit: float(np.mean(errors <= limit)) for limit in WITHIN},
        covered=float(np.mean(inside)),
        coverage=told[0].coverage,
        outside=sum(bool(one.outside) for one in told),
    )


def by_scale(model: WriteModel, samples: Sequence[Sample]) -> dict[int, Scores]:
    """Return the scores for each number of nodes."""
    scales = sorted({one.write.nodes for one in samples})
    return {
        scale: evaluate(model, [one for one in samples if one.write.nodes == scale])
        for scale in scales
    }
