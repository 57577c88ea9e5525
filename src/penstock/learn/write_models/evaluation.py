"""How good a model is on samples: relative errors, shares within limits, coverage of intervals.

Paper write-models, IV-C: the relative error is (t' - t) / t, with t the mean of a sample's runs.
The paper counts samples within 0.2 and 0.3.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError
from penstock.learn.write_models.model import TrainedModel
from penstock.learn.write_models.prediction import Prediction, WriteModel
from penstock.learn.write_models.samples import Sample
from penstock.model.write import Write

WITHIN = (0.2, 0.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The result on some samples."""

    samples: int
    median_error: float
    """Median of the absolute errors."""
    within: dict[float, float]
    """Fraction of samples whose error is at most the key."""
    covered: float
    """Fraction of samples in their interval; it should be `coverage`."""
    coverage: float
    outside: int
    """Samples outside the model's range."""


def evaluate(model: WriteModel, samples: Sequence[Sample]) -> Scores:
    """Return how good a model is on samples of its machine."""
    return scores(predictions(model, samples))


def predictions(
    model: WriteModel, samples: Sequence[Sample], tags: Sequence[str] | None = None
) -> list[tuple[Sample, Prediction]]:
    """Return samples with their predictions; `tags` are for models that have tags."""
    other = next((one.machine for one in samples if one.machine != model.machine.name), None)
    if other is not None:
        raise InputError(f"a sample is of {other!r}, the model of {model.machine.name!r}")
    if tags is None or not isinstance(model, TrainedModel):
        return [(one, model.predict(one.write)) for one in samples]
    pairs = zip(samples, tags, strict=True)
    return [(one, model.predict(one.write, tag=tag)) for one, tag in pairs]


def scores(pairs: Sequence[tuple[Sample, Prediction]]) -> Scores:
    """Return how good predictions are."""
    if not pairs:
        raise InputError("no samples to evaluate a model on; give some")
    truth = np.array([sample.seconds for sample, _ in pairs])
    errors = np.abs(np.array([prediction.seconds for _, prediction in pairs]) / truth - 1)
    inside = [p.low <= sample.seconds <= p.high for sample, p in pairs]
    return Scores(
        samples=len(pairs),
        median_error=float(np.median(errors)),
        within={limit: float(np.mean(errors <= limit)) for limit in WITHIN},
        covered=float(np.mean(inside)),
        coverage=pairs[0][1].coverage,
        outside=sum(bool(prediction.outside) for _, prediction in pairs),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeatability:
    """Median relative errors of measurements as predictions of each other: the floor."""

    own: float
    """Error of the median of all identical samples; too small, as it includes the sample itself."""
    others: float
    """Error of the median of the other samples; too large, as it is uncertain with few samples."""
    samples: int
    """Samples with others like them."""


def repeatability(samples: Sequence[Sample]) -> Repeatability:
    """Return how well samples of the same write, from the same source, predict each other."""
    alike: dict[tuple[str, Write], list[float]] = {}
    for one in samples:
        alike.setdefault((one.source, one.write), []).append(one.seconds)
    own: list[float] = []
    others: list[float] = []
    for times in (times for times in alike.values() if len(times) > 1):
        for k, seconds in enumerate(times):
            own.append(abs(statistics.median(times) / seconds - 1))
            others.append(abs(statistics.median(times[:k] + times[k + 1 :]) / seconds - 1))
    if not own:
        raise InputError("no write was repeated; a floor needs samples of the same write")
    return Repeatability(
        own=statistics.median(own), others=statistics.median(others), samples=len(own)
    )
