"""Features of an observation that distinguish access patterns: numbers, by name.

The first five are the thesis' own (forwarding, 3.2). Most of the others have no unit: they are the
same for small requests and large ones, and for few clients and many.

A model looks at those that go with the pattern most, by Spearman's rank. The thesis ranks 35
metrics by their correlation with the class as a number (Figure 3.2), which depends on how classes
are numbered. Here a feature counts as much as with the class that it tells from the others best,
whatever the numbering. Of two that say the same, the weaker is left out.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from penstock.learn.detection.samples import Sample
from penstock.model import Observation
from penstock.model.observation import PATTERNS
from penstock.model.tuning import Operation

Feature = Callable[[Observation], float]
THESIS = ("handles", "smallest", "largest", "size", "distance")
_LIMIT = 2.0**63
ONE_SIDED = 0.9
"""Fraction of requests of one operation from which the observation has that operation."""
COUNT = 5
ALIKE = 0.98
"""Features with at least this rank correlation are redundant."""
WEAK = 0.2
"""A smaller coefficient counts as no relation."""
THESIS_ORDER = ("file-per-process", "shared-strided", "shared-contiguous")
"""The order of its list of classes (3.2): by distance between requests."""


def _size(observation: Observation) -> float:
    return observation.asked / observation.requests


FEATURES: Mapping[str, Feature] = {
    "handles": lambda o: float(o.handles),
    "smallest": lambda o: float(o.smallest),
    "largest": lambda o: float(o.largest),
    "size": _size,
    "distance": lambda o: o.distance,
    "clients": lambda o: float(o.clients),
    "handles_per_client": lambda o: o.handles / o.clients,
    "jump": lambda o: o.distance / _size(o),
    "jump_per_client": lambda o: o.distance / _size(o) / o.clients,
    "forward": lambda o: o.forward,
    "evenness": lambda o: o.smallest / o.largest,
    "read_share": lambda o: o.reads / o.requests,
    "requests_per_second": lambda o: o.requests / o.seconds,
    "bytes_per_second": lambda o: o.moved / o.seconds,
    "queued": lambda o: o.queued,
    "busy_share": lambda o: o.busy / o.seconds,
}
"""They are defined for observations without `doubt`."""
SCALE_FREE = ("handles_per_client", "jump", "jump_per_client", "forward", "evenness", "read_share")
"""Features for a model that is used with other sizes and numbers than it was trained with."""


def doubt(observation: Observation) -> str:
    """Return why an observation is invalid or empty; "" if it is valid."""
    metrics = (getattr(observation, field.name) for field in fields(observation))
    if not all(0 <= metric < _LIMIT for metric in metrics if metric is not None):
        return "a metric is not a number, or out of range"
    requests = observation.requests
    if not requests or not observation.asked or not observation.seconds:
        return "there are no requests"
    if not observation.smallest * requests <= observation.asked <= observation.largest * requests:
        return "the sizes of requests contradict each other"
    if not (1 <= observation.handles <= requests and 1 <= observation.clients <= requests):
        return "more files or clients than requests, or none"
    parts = (observation.forward, observation.sequential, observation.strided, observation.shared)
    too_busy = observation.busy > 1.01 * observation.seconds + 0.001
    if too_busy or any(part is not None and part > 1 for part in parts):
        return "a share is above one"
    return ""


def operation(observation: Observation) -> Operation:
    """Return the operation of most requests."""
    if observation.reads >= ONE_SIDED * observation.requests:
        return "read"
    return "write" if observation.writes >= ONE_SIDED * observation.requests else "mixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Spearman's coefficient of a feature: with the class's number, and with each class alone."""

    feature: str
    ordered: float
    by_class: tuple[float, ...]

    @property
    def strength(self) -> float:
        """Return the largest coefficient with any class."""
        return max(map(abs, self.by_class))


def table(samples: Sequence[Sample], names: Sequence[str]) -> NDArray[np.float64]:
    """Return the features of samples: one row per sample, one column per name."""
    columns = [FEATURES[name] for name in names]
    return np.array([[f(one.observation) for f in columns] for one in samples], dtype=np.float64)


def correlations(
    samples: Sequence[Sample], order: Sequence[str] = THESIS_ORDER
) -> list[Correlation]:
    """Return all candidates, the strongest first; classes are numbered in this order."""
    ordered = np.array([[order.index(one.pattern)] for one in samples], np.float64)
    alone = np.array([[one.pattern == p for p in PATTERNS] for one in samples], np.float64)
    between = _spearman(np.hstack([table(samples, list(FEATURES)), ordered, alone]))
    with_class = between[: len(FEATURES), len(FEATURES) :].tolist()
    result = [
        Correlation(feature=name, ordered=row[0], by_class=tuple(row[1:]))
        for name, row in zip(FEATURES, with_class, strict=True)
    ]
    return sorted(result, key=lambda one: -one.strength)


def select(
    samples: Sequence[Sample], among: Collection[str] = SCALE_FREE, count: int = COUNT
) -> list[str]:
    """Select features: the strongest that are neither redundant nor weak."""
    names = [
        one.feature
        for one in correlations(samples)
        if one.feature in among and one.strength >= WEAK
    ]
    between = np.abs(_spearman(table(samples, names)))
    selection: list[int] = []
    for k in range(len(names)):
        if len(selection) < count and all(between[k, j] < ALIKE for j in selection):
            selection.append(k)
    return [names[k] for k in selection]


def _spearman(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank correlation of each column with each; 0 where one is constant."""
    from scipy.stats import rankdata  # noqa: PLC0415 - slow to import, and only needed here

    ranks: NDArray[np.float64] = rankdata(columns, axis=0)
    ranks -= ranks.mean(axis=0)
    norms = np.sqrt((ranks**2).sum(axis=0))
    products = np.outer(norms, norms)
    return np.divide(ranks.T @ ranks, products, out=np.zeros_like(products), where=products > 0)
