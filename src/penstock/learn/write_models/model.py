"""A trained model of writes in a file: plain arrays, evaluated without scikit-learn.

docs/writes/write-models.md describes the file field by field. `open_model` gives the model of a
file, or the one that a machine's description makes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, field

from penstock.errors import InputError, unknown
from penstock.files import reason
from penstock.learn.model_format import Format
from penstock.learn.trees import Tree, check_finite
from penstock.learn.write_models import dataset, features, machine, parameters
from penstock.learn.write_models.dataset import Range
from penstock.learn.write_models.extrapolation import Extrapolation
from penstock.learn.write_models.intervals import WIDEST, Interval
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.prediction import Physical, Prediction, WriteModel
from penstock.learn.write_models.samples import SIMULATED
from penstock.model.write import Write

FORMAT, VERSION = "penstock-write-model", 2
PLAUSIBLE = Write(nodes=1, cores=1, burst=2.0**20)
"""A write that every model must be able to predict."""


class Coefficients(msgspec.Struct, frozen=True, kw_only=True):
    """A linear model, in the features' own units."""

    intercept: float
    by_feature: list[float]


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a file; of its last three fields, the one that `kind` names is there."""

    format: str
    version: int
    machine: Machine
    kind: Literal["linear", "trees", "extrapolating"]
    technique: str
    features: list[str]
    """Names in order; names of loads if the model uses loads."""
    sources: list[str]
    """Sources of the training samples; SIMULATED means never measured."""
    tags: list[str]
    """Tags in order; each but the first is a column after the features."""
    range: Range = field(name="seen")
    interval: Interval
    least: Annotated[float, Meta(gt=0)]
    """Seconds: the lower limit of predictions."""
    provenance: dict[str, Any] = field(default_factory=dict, name="made")
    """How the model was trained, and with what; for people."""
    linear: Coefficients | None = None
    trees: list[Tree] = []
    extrapolating: Extrapolation | None = None


@dataclass(frozen=True, slots=True)
class SelectedFeature:
    """A feature with a coefficient other than zero in a linear model."""

    name: str
    stage: str
    meaning: str
    coefficient: float
    """Seconds per unit of the feature."""


class TrainedModel:
    """Evaluates a stored model; a WriteModel."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.machine = model.machine
        self.tag = ""
        """The tag of writes that are predicted without one."""
        self._features = features.features(model.machine)
        self._check()

    def predict(self, write: Write, *, tag: str | None = None) -> Prediction:
        """Predict a write; InputError for one that the machine cannot do."""
        model, tag = self.model, self.tag if tag is None else tag
        values = parameters.parameters(self.machine, write)
        stages: Mapping[str, float] | None = None
        if model.extrapolating is not None:
            seconds, stages = self._extrapolate(model.extrapolating, values, write.nodes, tag)
        else:
            seconds = self._regress(values, tag)
        seconds = max(seconds, model.least)
        outside = model.range.outside(self.machine, write, tag)
        octaves = dataset.distance(outside)
        low, high = model.interval.around(seconds, octaves)
        return Prediction(
            seconds=seconds,
            low=low,
            high=high,
            coverage=model.interval.coverage,
            outside=tuple(outside),
            stages=stages,
            run=model.interval.around(seconds, octaves, one_run=True),
            origin=self.origin,
        )

    @property
    def origin(self) -> str:
        """Return a note if samples were simulated; "" if all were measured."""
        if SIMULATED not in self.model.sources:
            return ""
        part = "" if self.model.sources == [SIMULATED] else "partly "
        return f"made {part}of simulated samples, not measured"

    @property
    def selected_features(self) -> list[SelectedFeature]:
        """Return the features that a linear model uses; empty for other models."""
        if self.model.linear is None:
            return []
        twins = features.twins(self.model.machine)
        twins |= {other: one for one, other in twins.items()}
        columns = [(one.name, one.stage, _meaning(one, twins)) for one in self._features]
        columns += [(f"tag {tag}", "tag", "the write has this tag") for tag in self.model.tags[1:]]
        weights = zip(columns, self.model.linear.by_feature, strict=True)
        return [SelectedFeature(*column, weight) for column, weight in weights if weight]

    def _extrapolate(
        self, model: Extrapolation, values: Mapping[str, float], nodes: int, tag: str
    ) -> tuple[float, Mapping[str, float]]:
        row = parameters.log_loads(self.machine, [parameters.loads(self.machine, values)])
        growth = parameters.load_growth(self.machine, np.array([nodes]), model.largest)
        log_seconds, parts = model.evaluate(row, [tag], growth)
        by_stage = zip(parameters.stage_names(self.machine), parts[0].tolist(), strict=True)
        return math.exp(min(log_seconds[0], 500.0)), dict(sorted(by_stage, key=lambda one: -one[1]))

    def _regress(self, values: Mapping[str, float], tag: str) -> float:
        row: Sequence[float] = [
            *features.row(self._features, values),
            *(float(tag == one) for one in self.model.tags[1:]),
        ]
        if self.model.linear is not None:
            by_feature = self.model.linear.by_feature
            return float(self.model.linear.intercept + sum(map(mul, by_feature, row)))
        return sum(tree.evaluate(row)[0] for tree in self.model.trees) / len(self.model.trees)

    def _check(self) -> None:
        """Raise InputError unless the model can be evaluated."""
        model = self.model
        machine.check(model.machine)
        width = len(self._features) + len(model.tags[1:])
        parts = (model.linear is not None, bool(model.trees), model.extrapolating is not None)
        if parts != tuple(model.kind == kind for kind in ("linear", "trees", "extrapolating")):
            raise InputError(f"it lacks the parts of a model of kind {model.kind!r}")
        if model.features != input_names(model.machine, model.kind):
            raise InputError(f"its features are not those of {model.machine.name}")
        if model.linear is not None:
            if len(model.linear.by_feature) != width:
                raise InputError("it does not have one coefficient per feature")
            check_finite([[model.linear.intercept, *model.linear.by_feature]])
        for tree in model.trees:
            tree.check(width, 1)
        if model.extrapolating is not None:
            _check_extrapolation(model.extrapolating, len(model.machine.stage) + 1)
        interval = model.interval
        widths = (interval.half, interval.beyond, interval.run)
        if (
            not 0 < interval.coverage < 1
            or not all(0 <= wide <= WIDEST for wide in widths)
            or not 0 <= interval.growth < math.inf
        ):
            raise InputError("its interval is invalid")
        check_finite([[model.least]])
        if set(model.range.axes) != set(dataset.axes(model.machine, PLAUSIBLE)) or not all(
            0 < low <= high < math.inf for low, high in model.range.axes.values()
        ):
            raise InputError("its range of samples ('seen') is invalid")
        try:
            self.predict(PLAUSIBLE, tag=model.tags[0] if model.tags else "")
        except Exception as error:
            raise InputError(f"it cannot be evaluated: {reason(error)}") from error


def _meaning(feature: features.Feature, twins: Mapping[str, str]) -> str:
    twin = twins.get(feature.name)
    return feature.meaning if twin is None else f"{feature.meaning} ({twin} is the same here)"


def input_names(machine: Machine, kind: str) -> list[str]:
    """Return the names of the inputs of a model of a kind, in order."""
    if kind == "extrapolating":
        return parameters.stage_names(machine)
    return [one.name for one in features.features(machine)]


def _check_extrapolation(model: Extrapolation, stages: int) -> None:
    rows = [model.term.level, *model.term.by_tag.values(), model.boosted.low, model.boosted.high]
    if any(len(row) != stages for row in rows):
        raise InputError("its term does not fit the machine's stages")
    check_finite([*rows, [model.term.power]])
    if model.largest < 1 or not 0 <= model.damping <= 1:
        raise InputError(f"damping {model.damping:g} beyond {model.largest} nodes is invalid")
    if model.term.power < 1:
        raise InputError(f"the power of its term is {model.term.power:g}; it must be 1 or more")
    for tree in model.boosted.trees:
        tree.check(stages, 1)


FILES = Format(
    name=FORMAT,
    version=VERSION,
    subject="writes",
    make=lambda content: TrainedModel(msgspec.json.decode(content, type=Model)),
    remedy="'penstock write-model train' makes another",
    most=256 * 2**20,
)
decode, load = FILES.decode, FILES.load


def save(trained: TrainedModel, path: Path) -> None:
    """Write a model, whole or not at all."""
    FILES.save(trained.model, path)


def open_model(name: str | None, file: Path | None, tag: str | None = None) -> WriteModel:
    """Return the model in a file, else that of a machine's description (a name or a TOML file)."""
    if file is None:
        if name is None:
            raise InputError(
                "neither a machine nor a model; 'penstock machines' lists the machines"
            )
        if tag is not None:
            raise InputError(f"tag {tag!r}: only a model has tags; give one")
        return Physical(machine=machine.load(name))
    trained = load(file)
    if name is not None and machine.load(name).name != trained.machine.name:
        raise InputError(f"{file} is a model of {trained.machine.name!r}, not of {name!r}")
    if tag is not None:
        if tag not in trained.model.tags:
            raise unknown(f"tag of {file}", tag, trained.model.tags)
        trained.tag = tag
    return trained
