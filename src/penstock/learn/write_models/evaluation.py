"""How good a model is on samples: relative errors, shares within limits, what intervals cover.

Paper write-models, IV-C: the relative error is (t' - t) / t, of the mean t of a sample's runs; it
counts samples within 0.2 and 0.3.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError
from penstock.learn.write_models.model import Learned
from penstock.learn.write_models.prediction import Prediction, WriteModel
from penstock.learn.write_models.samples import Sample
from penstock.model.write import Write

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
    return scores(predictions(model, samples))


def predictions(
    model: WriteModel, samples: Sequence[Sample], tags: Sequence[str] | None = None
) -> list[tuple[Sample, Prediction]]:
    """Return samples with what a model says of them; `tags` for models that know some."""
    other = next((one.machine for one in samples if one.machine != model.machine.name), None)
    if other is not None:
        raise InputError(f"a sample is of {other!r}, the model of {model.machine.name!r}")
    if tags is None or not isinstance(model, Learned):
        return [(one, model.predict(one.write)) for one in samples]
    pairs = zip(samples, tags, strict=True)
    return [(one, model.predict(one.write, tag=tag)) for one, tag in pairs]


def scores(told: Sequence[tuple[Sample, Prediction]]) -> Scores:
    """Return how good predictions are."""
    if not told:
        raise InputError("no samples to judge a model by; give some")
    true = np.array([one.seconds for one, _ in told])
    errors = np.abs(np.array([said.seconds for _, said in told]) / true - 1)
    inside = [said.low <= one.seconds <= said.high for one, said in told]
    return Scores(
        samples=len(told),
        median_error=float(np.median(errors)),
        within={limit: float(np.mean(errors <= limit)) for limit in WITHIN},
        covered=float(np.mean(inside)),
        coverage=told[0][1].coverage,
        outside=sum(bool(said.outside) for _, said in told),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """Median relative errors of what was measured as a prediction of itself: the floor."""

    own: float
    """Of the median of all identical samples, which has the sample itself in it: too small."""
    others: float
    """Of the median of the others, which is not known well from few: too large."""
    samples: int
    """That have others like them."""


def repeated(samples: Sequence[Sample]) -> Repeated:
    """Return how well samples of the same write, from the same source, tell each other."""
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
    return Repeated(own=statistics.median(own), others=statistics.median(others), samples=len(own))
