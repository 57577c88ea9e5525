"""Models that detect access patterns: plain arrays, read from a file.

Evaluation needs only this module and `features`: scikit-learn trains models (`training`), and is
not needed to evaluate them. docs/live/patterns.md has the file field by field.
"""

import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from operator import mul
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, field

from penstock.errors import InputError, unknown
from penstock.files import reason
from penstock.learn.detection import definitions
from penstock.learn.detection.features import FEATURES, doubt, operation
from penstock.learn.model_format import Format
from penstock.learn.trees import Floats, Tree, check_finite
from penstock.model import Context, Observation
from penstock.model.observation import PATTERNS, UNKNOWN
from penstock.model.tuning import power_of_two

FORMAT, VERSION = "penstock-patterns", 1
SHIPPED = "patterns.json"
MOST_POWER = 20.0
"""Limit of the Yeo-Johnson power: training gives a few units, and far larger ones overflow."""
PLAUSIBLE = Observation(
    seconds=1.0,
    busy=0.5,
    reads=64,
    writes=64,
    read_bytes=4 * 2**20,
    write_bytes=4 * 2**20,
    handles=8,
    clients=8,
    smallest=2**16,
    largest=2**16,
    asked=8 * 2**20,
    distance=2.0**19,
    forward=0.5,
    queued=4.0,
)
"""An observation that every model must be able to classify."""


class Detected(NamedTuple):
    """A pattern, or "unknown", and its confidence.

    That is the part of the requests that do what the pattern means, or a model's share.
    """

    pattern: str
    confidence: float


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer of a network: one row of weights and one bias per unit."""

    weights: list[Floats]
    bias: Floats


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """Yeo-Johnson, centre and scale for each feature; then layers, with ReLU between them."""

    power: Floats
    mean: Floats
    scale: Floats
    layers: Annotated[list[Layer], Meta(min_length=1)]

    def evaluate(self, values: Sequence[float]) -> Sequence[float]:
        """Return the shares of the classes: softmax."""
        activation = [
            (yeo_johnson(value, power) - mean) / scale
            for value, power, mean, scale in zip(
                values, self.power, self.mean, self.scale, strict=True
            )
        ]
        for k, layer in enumerate(self.layers):
            if k:
                activation = [x if x > 0 else 0.0 for x in activation]
            activation = [
                sum(map(mul, row, activation), bias)
                for row, bias in zip(layer.weights, layer.bias, strict=True)
            ]
        top = max(activation)
        raised = [math.exp(x - top) for x in activation]
        whole = sum(raised)
        return [x / whole for x in raised]

    def check(self, features: int, classes: int) -> None:
        """Raise InputError unless its arrays fit each other."""
        if any(len(array) != features for array in (self.power, self.mean, self.scale)):
            raise InputError("the network does not have power, mean and scale for every feature")
        width = features
        for layer in self.layers:
            if len(layer.weights) != len(layer.bias) or any(
                len(row) != width for row in layer.weights
            ):
                raise InputError("a layer of the network does not fit the one before")
            width = len(layer.bias)
            check_finite([*layer.weights, layer.bias])
        if width != classes:
            raise InputError("the network does not have an output for every class")
        check_finite([self.power, self.mean, self.scale])
        if any(scale <= 0 for scale in self.scale):
            raise InputError("a scale of the network is not above zero")
        if any(abs(power) > MOST_POWER for power in self.power):
            raise InputError(f"a power of the network is not within +-{MOST_POWER:g}")


def yeo_johnson(value: float, power: float) -> float:
    """Return a value (0 or more, as all features are) transformed."""
    if abs(power) < 1e-12:
        return math.log1p(value)
    # Features may be arbitrarily large: the exponential must not overflow.
    return math.expm1(min(power * math.log1p(value), 709.0)) / power


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A classifier of observations by access pattern."""

    format: str
    version: int
    kind: Literal["tree", "forest", "network"]
    features: Annotated[list[str], Meta(min_length=1, max_length=64)]
    classes: Annotated[list[str], Meta(min_length=2, max_length=16)]
    least_requests: Annotated[int, Meta(ge=1)] = 4
    """Minimum number of requests in an interval."""
    least_confidence: Annotated[float, Meta(ge=0, le=1)] = 0.75
    """Below it the pattern is unknown."""
    trees: list[Tree] = []
    network: Network | None = None
    provenance: dict[str, Any] = field(default_factory=dict, name="made")
    """How the model was trained, and its scores; for people."""

    def shares(self, observation: Observation) -> Sequence[float]:
        """Return the share of each class for a valid observation."""
        values = [FEATURES[name](observation) for name in self.features]
        if self.network is not None:
            return self.network.evaluate(values)
        if len(self.trees) == 1:
            return self.trees[0].evaluate(values)
        by_tree = [tree.evaluate(values) for tree in self.trees]
        return [sum(share) / len(by_tree) for share in zip(*by_tree, strict=True)]

    def detect(self, observation: Observation) -> Detected:
        """Return the pattern of an observation, and its confidence.

        It follows from the definitions if the I/O node observed streams; otherwise by `classify`.
        """
        defined = definitions.pattern(observation)
        if defined is None:
            return self.classify(observation)
        return Detected(*defined) if self._is_valid(observation) else Detected(UNKNOWN, 0.0)

    def classify(self, observation: Observation) -> Detected:
        """Return the pattern that was learnt for such metrics of files as a whole."""
        if not self._is_valid(observation):
            return Detected(UNKNOWN, 0.0)
        shares = self.shares(observation)
        confidence = max(shares)
        if not confidence >= self.least_confidence:
            return Detected(UNKNOWN, confidence)
        return Detected(self.classes[list(shares).index(confidence)], confidence)

    def _is_valid(self, observation: Observation) -> bool:
        return observation.requests >= self.least_requests and not doubt(observation)

    def situation(self, observation: Observation) -> tuple[Context | None, float]:
        """Return an I/O node's context, for tuners, and the confidence of its pattern.

        None without enough requests.
        """
        if not self._is_valid(observation):
            return None, 0.0
        pattern, confidence = self.detect(observation)
        context = Context(
            operation=operation(observation),
            pattern=pattern,
            size=power_of_two(observation.asked // observation.requests),
            load=power_of_two(observation.clients),
        )
        return context, confidence

    def check(self) -> None:
        """Raise InputError unless the model can be evaluated."""
        for name in self.features:
            if name not in FEATURES:
                raise unknown("feature", name, FEATURES)
        for name in self.classes:
            if name not in PATTERNS:
                raise unknown("pattern", name, PATTERNS)
        if self.kind == "network":
            parts: Sequence[Tree | Network] = [] if self.network is None else [self.network]
        else:
            parts = self.trees if self.network is None else []
        if not parts or (self.kind == "tree" and len(parts) > 1):
            raise InputError(f"it lacks the parts of a {self.kind}")
        for part in parts:
            part.check(len(self.features), len(self.classes))
        try:
            shares = self.shares(PLAUSIBLE)
        except Exception as error:
            raise InputError(f"it cannot be evaluated: {reason(error)}") from error
        check_finite([list(shares)])


def _decode(content: bytes) -> Model:
    model = msgspec.json.decode(content, type=Model)
    model.check()
    return model


FILES = Format(
    name=FORMAT,
    version=VERSION,
    subject="access patterns",
    make=_decode,
    remedy="'penstock patterns train' makes another",
    most=64 * 2**20,
)
decode, load = FILES.decode, FILES.load


@cache
def shipped() -> Model:
    """Return the built-in model, which is the default."""
    return decode(files("penstock.data").joinpath(SHIPPED).read_bytes(), SHIPPED)


def save(model: Model, path: Path) -> None:
    """Write a model, whole or not at all."""
    model.check()
    FILES.save(model, path)
