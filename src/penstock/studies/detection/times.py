"""What training and single predictions take, by the clock: a cell of its own (Table 3.5)."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.campaign.journal import Row, Value
from penstock.campaign.sizes import Size
from penstock.learn.detection import model as models
from penstock.learn.detection import samples as files
from penstock.learn.detection import training
from penstock.learn.detection.features import select, table
from penstock.learn.detection.model import Model
from penstock.learn.detection.samples import Sample
from penstock.learn.detection.training import KINDS, Kind, Trained

TIMES = "times"
SHIPPED = "shipped"
TIMED = 200
"""Observations that a prediction is timed with, one by one."""
REPETITIONS = 3
"""Times that training a tree is timed; the thesis has the median of ten."""
TREES: Mapping[Size, int] = {"quick": 30, "fast": training.TREES, "full": training.TREES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Median seconds: of training by kind, of a prediction by scikit-learn, and as exported."""

    train: Mapping[Kind, float]
    sklearn: Mapping[Kind, float]
    exported: Mapping[Kind, float]
    shipped: float
    """Of a prediction by the model in the package."""

    @classmethod
    def from_rows(cls, rows: Sequence[Row]) -> "Times":
        """Return the times of the rows of their cell."""
        by_model = {str(row["model"]): row for row in rows}

        def column(name: str) -> dict[Kind, float]:
            return {kind: float(str(by_model[kind][name])) for kind in KINDS}

        return cls(
            train=column("train"),
            sklearn=column("sklearn"),
            exported=column("exported"),
            shipped=float(str(by_model[SHIPPED]["exported"])),
        )


def measure(size: Size, seed: int) -> Iterator[dict[str, Value]]:
    """Train a model of each kind on the observations in the package, and predict with it."""
    samples = files.of_sizes(files.shipped(), files.TRAINED_ON)
    first, _ = training.split(samples, seed=seed)
    new = files.of_sizes(files.shipped(), files.JUDGED_BY)[:TIMED]
    features = select(samples)
    for kind in KINDS:
        fits = [
            training.train(first, kind, features, seed=seed, trees=TREES[size])
            for _ in range(REPETITIONS if kind == "tree" else 1)
        ]
        yield {
            "part": TIMES,
            "model": kind,
            "train": statistics.median(one.seconds for one in fits),
            "sklearn": _sklearn(fits[0], new[: TIMED // 10]),
            "exported": _exported(fits[0].model, new),
        }
    yield {"part": TIMES, "model": SHIPPED, "exported": _exported(models.shipped(), new)}


def _exported(model: Model, samples: Sequence[Sample]) -> float:
    return _median(lambda one: model.detect(one.observation), samples)


def _sklearn(trained: Trained, samples: Sequence[Sample]) -> float:
    rows = [row.reshape(1, -1) for row in table(samples, trained.model.features)]
    return _median(trained.estimator.predict, rows)


def _median(predict: Callable[[Any], object], inputs: Sequence[Any]) -> float:
    """Return the median seconds of single predictions."""
    times = []
    for one in inputs:
        began = time.perf_counter()
        predict(one)
        times.append(time.perf_counter() - began)
    return statistics.median(times)
