"""A model of writes in a file: plain arrays, read and evaluated without scikit-learn.

docs/writes/write-models.md has the file field by field.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from penstock.errors import InputError
from penstock.files import reason, replacing
from penstock.learn.model_format import Format
from penstock.learn.trees import Tree, check_finite
from penstock.learn.write_models import features, loads, machine, ranges
from penstock.learn.write_models.extrapolating import Extrapolating
from penstock.learn.write_models.intervals import WIDEST, Interval
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.parameters import parameters
from penstock.learn.write_models.prediction import Prediction
from penstock.learn.write_models.ranges import Range
from penstock.learn.write_models.samples import SIMULATED
from penstock.model.write import Write

FORMAT, VERSION = "penstock-write-model", 2
PLAUSIBLE = Write(nodes=1, cores=1, burst=2.0**20)
"""What every model must have an answer to."""


class Coefficients(msgspec.Struct, frozen=True, kw_only=True):
    """Of a linear model, in the features' own units."""

    intercept: float
    by_feature: list[float]


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a file says; one of its three last parts is there, as the kind has it."""

    format: str
    version: int
    machine: Machine
    kind: Literal["linear", "trees", "extrapolating"]
    technique: str
    features: list[str]
    """Names, in order; of the loads, where the model looks at those."""
    sources: list[str]
    """Of its samples; SIMULATED was never measured."""
    tags: list[str]
    """In order; every one but the first is a column after the features."""
    seen: Range
    interval: Interval
    least: Annotated[float, Meta(gt=0)]
    """Seconds: no prediction is below."""
    made: dict[str, Any] = {}
    """Of what and how; for people."""
    linear: Coefficients | None = None
    trees: list[Tree] = []
    extrapolating: Extrapolating | None = None


@dataclass(frozen=True, slots=True)
class Selected:
    """A feature that a linear model looks at."""

    name: str
    stage: str
    meaning: str
    coefficient: float
    """Seconds for each unit of the feature."""


class Learned:
    """A model that can be asked; a WriteModel."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.machine = model.machine
        self._features = features.features(model.machine)
        self._check()

    def predict(self, write: Write, *, tag: str = "") -> Prediction:
        """Return what a write takes; InputError for one that the machine cannot do."""
        model = self.model
        found = parameters(self.machine, write)
        stages: Mapping[str, float] | None = None
        if model.extrapolating is not None:
            seconds, stages = self._extrapolated(model.extrapolating, found, write.nodes, tag)
        else:
            seconds = self._regressed(found, tag)
        seconds = max(seconds, model.least)
        outside = model.seen.outside(self.machine, write, tag)
        away = ranges.distance(outside)
        low, high = model.interval.around(seconds, away)
        return Prediction(
            seconds=seconds,
            low=low,
            high=high,
            coverage=model.interval.coverage,
            outside=tuple(outside),
            stages=stages,
            run=model.interval.around(seconds, away, one_run=True),
            origin=self.origin,
        )

    @property
    def origin(self) -> str:
        """Return what is to be known of its samples: "" where all were measured."""
        if SIMULATED not in self.model.sources:
            return ""
        part = "" if self.model.sources == [SIMULATED] else "partly "
        return f"made {part}of simulated samples, not measured"

    @property
    def selected(self) -> list[Selected]:
        """Return the features that a linear model looks at, by what they move; else none."""
        if self.model.linear is None:
            return []
        weights = self.model.linear.by_feature
        same = features.same(self.model.machine)
        twins = same | {other: one for one, other in same.items()}
        found = [
            Selected(one.name, one.stage, _meaning(one, twins), weight)
            for one, weight in zip(self._features, weights, strict=False)
            if weight
        ]
        tags = zip(self.model.tags[1:], weights[len(self._features) :], strict=True)
        return [
            *found,
            *(Selected(f"tag {tag}", "tag", "it is so", weight) for tag, weight in tags if weight),
        ]

    def _extrapolated(
        self, whole: Extrapolating, found: Mapping[str, float], nodes: int, tag: str
    ) -> tuple[float, Mapping[str, float]]:
        row = loads.logarithms(self.machine, [loads.loads(self.machine, found)])
        grown = loads.grown(self.machine, np.array([nodes]), whole.largest)
        told, parts = whole.evaluate(row, [tag], grown)
        by_stage = zip(loads.stages(self.machine), parts[0].tolist(), strict=True)
        return math.exp(min(told[0], 500.0)), dict(sorted(by_stage, key=lambda one: -one[1]))

    def _regressed(self, found: Mapping[str, float], tag: str) -> float:
        values: Sequence[float] = [
            *features.row(self._features, found),
            *(float(tag == one) for one in self.model.tags[1:]),
        ]
        if self.model.linear is not None:
            by_feature = self.model.linear.by_feature
            return float(self.model.linear.intercept + sum(map(mul, by_feature, values)))
        return sum(tree.evaluate(values)[0] for tree in self.model.trees) / len(self.model.trees)

    def _check(self) -> None:
        """Raise InputError unless it can be evaluated."""
        model = self.model
        machine.check(model.machine)
        width = len(self._features) + len(model.tags[1:])
        parts = (model.linear is not None, bool(model.trees), model.extrapolating is not None)
        if parts != tuple(model.kind == kind for kind in ("linear", "trees", "extrapolating")):
            raise InputError(f"it has not what a model of kind {model.kind!r} is made of")
        if model.features != looked_at(model.machine, model.kind):
            raise InputError(f"its features are not those of {model.machine.name}")
        if model.linear is not None:
            if len(model.linear.by_feature) != width:
                raise InputError("it has not a coefficient for every feature")
            check_finite([[model.linear.intercept, *model.linear.by_feature]])
        for tree in model.trees:
            tree.check(width, 1)
        if model.extrapolating is not None:
            _check_extrapolating(model.extrapolating, len(model.machine.stage) + 1)
        interval = model.interval
        widths = (interval.half, interval.beyond, interval.run)
        if (
            not 0 < interval.coverage < 1
            or not all(0 <= wide <= WIDEST for wide in widths)
            or not 0 <= interval.growth < math.inf
        ):
            raise InputError("its interval is none")
        check_finite([[model.least]])
        if set(model.seen.axes) != set(ranges.axes(model.machine, PLAUSIBLE)) or not all(
            0 < low <= high < math.inf for low, high in model.seen.axes.values()
        ):
            raise InputError("what it has seen is no range")
        try:
            self.predict(PLAUSIBLE, tag=model.tags[0] if model.tags else "")
        except Exception as error:
            raise InputError(f"it cannot be evaluated: {reason(error)}") from error


def _meaning(feature: features.Feature, twins: Mapping[str, str]) -> str:
    twin = twins.get(feature.name)
    return feature.meaning if twin is None else f"{feature.meaning} ({twin} is the same here)"


def looked_at(machine: Machine, kind: str) -> list[str]:
    """Return the names of what a model of a kind looks at, in order."""
    if kind == "extrapolating":
        return loads.stages(machine)
    return [one.name for one in features.features(machine)]


def _check_extrapolating(whole: Extrapolating, stages: int) -> None:
    rows = [whole.term.level, *whole.term.by_tag.values(), whole.boosted.low, whole.boosted.high]
    if any(len(row) != stages for row in rows):
        raise InputError("its term does not fit the machine's stages")
    check_finite([*rows, [whole.term.power]])
    if whole.largest < 1 or not 0 <= whole.damping <= 1:
        raise InputError(f"damping {whole.damping:g} beyond {whole.largest} nodes is none")
    if whole.term.power < 1:
        raise InputError(f"the power of its term is {whole.term.power:g}; it is 1 or more")
    for tree in whole.boosted.trees:
        tree.check(stages, 1)


FILES = Format(
    name=FORMAT,
    version=VERSION,
    of="writes",
    make=lambda content: Learned(msgspec.json.decode(content, type=Model)),
    remedy="'penstock write-model train' makes another",
    most=256 * 2**20,
)
decode, load = FILES.decode, FILES.load


def save(learned: Learned, path: Path) -> None:
    """Write a model, whole or not at all."""
    with replacing(path) as partial:
        partial.write_bytes(msgspec.json.encode(learned.model) + b"\n")
