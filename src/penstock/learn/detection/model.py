"""Models that tell access patterns: plain arrays, read from a file and evaluated as they are.

What serves needs nothing but this module and `features`: scikit-learn makes models (`training`),
and nothing of it is left in them. docs/live/patterns.md has the file field by field.
"""

import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from operator import mul
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from penstock.errors import InputError, unknown
from penstock.files import reason, replacing
from penstock.learn.detection.features import FEATURES, doubt, operation
from penstock.learn.model_format import Format
from penstock.learn.trees import Floats, Tree, check_finite
from penstock.model import Context, Observation
from penstock.model.observation import PATTERNS
from penstock.model.tuning import power_of_two

FORMAT, VERSION = "penstock-patterns", 1
SHIPPED = "patterns.json"
UNKNOWN = "unknown"
MOST_POWER = 20.0
"""Of Yeo-Johnson, either way: training gives a few units, and far larger ones overflow."""
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
"""What every model must have an answer to."""


class Detected(NamedTuple):
    """A pattern, or "unknown", and how sure that is: the share of a class, 0 where none is said."""

    pattern: str
    confidence: float


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """Of a network: a row of weights and a bias for each of its units."""

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
        told = [
            (yeo_johnson(value, power) - mean) / scale
            for value, power, mean, scale in zip(
                values, self.power, self.mean, self.scale, strict=True
            )
        ]
        for k, layer in enumerate(self.layers):
            if k:
                told = [x if x > 0 else 0.0 for x in told]
            told = [
                sum(map(mul, row, told), bias)
                for row, bias in zip(layer.weights, layer.bias, strict=True)
            ]
        top = max(told)
        raised = [math.exp(x - top) for x in told]
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
    # What a client asks for may be as far apart as it likes: the exponential must not overflow.
    return math.expm1(min(power * math.log1p(value), 709.0)) / power


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How patterns are told from observations."""

    format: str
    version: int
    kind: Literal["tree", "forest", "network"]
    features: Annotated[list[str], Meta(min_length=1, max_length=64)]
    classes: Annotated[list[str], Meta(min_length=2, max_length=16)]
    least_requests: Annotated[int, Meta(ge=1)] = 4
    """Fewer in an interval say nothing."""
    least_confidence: Annotated[float, Meta(ge=0, le=1)] = 0.75
    """Below it the pattern is unknown."""
    trees: list[Tree] = []
    network: Network | None = None
    made: dict[str, Any] = {}
    """Of what and how, and what it reached; for people."""

    def shares(self, seen: Observation) -> Sequence[float]:
        """Return the share of each class; of an observation that can be right."""
        values = [FEATURES[name](seen) for name in self.features]
        if self.network is not None:
            return self.network.evaluate(values)
        if len(self.trees) == 1:
            return self.trees[0].evaluate(values)
        told = [tree.evaluate(values) for tree in self.trees]
        return [sum(share) / len(told) for share in zip(*told, strict=True)]

    def detect(self, seen: Observation) -> Detected:
        """Return the pattern that an observation shows, and how sure that is."""
        if seen.requests < self.least_requests or doubt(seen):
            return Detected(UNKNOWN, 0.0)
        shares = self.shares(seen)
        confidence = max(shares)
        if not confidence >= self.least_confidence:
            return Detected(UNKNOWN, confidence)
        return Detected(self.classes[list(shares).index(confidence)], confidence)

    def situation(self, seen: Observation) -> tuple[Context | None, float]:
        """Return an I/O node's context, for tuners, and how sure its pattern is.

        None: there was no traffic to speak of.
        """
        pattern, confidence = self.detect(seen)
        if pattern == UNKNOWN and (seen.requests < self.least_requests or doubt(seen)):
            return None, 0.0
        context = Context(
            operation=operation(seen),
            pattern=pattern,
            size=power_of_two(seen.asked // seen.requests),
            load=power_of_two(seen.clients),
        )
        return context, confidence

    def check(self) -> None:
        """Raise InputError unless it can be evaluated."""
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
            raise InputError(f"it has not what a {self.kind} is made of")
        for part in parts:
            part.check(len(self.features), len(self.classes))
        try:
            shares = self.shares(PLAUSIBLE)
        except Exception as error:
            raise InputError(f"it cannot be evaluated: {reason(error)}") from error
        check_finite([list(shares)])


def _made(content: bytes) -> Model:
    model = msgspec.json.decode(content, type=Model)
    model.check()
    return model


FILES = Format(
    name=FORMAT,
    version=VERSION,
    subject="access patterns",
    make=_made,
    remedy="'penstock patterns train' makes another",
    most=64 * 2**20,
)
decode, load = FILES.decode, FILES.load


@cache
def shipped() -> Model:
    """Return the model that comes with the package: the default wherever none is given."""
    return decode(files("penstock.data").joinpath(SHIPPED).read_bytes(), SHIPPED)


def save(model: Model, path: Path) -> None:
    """Write a model, whole or not at all."""
    model.check()
    with replacing(path) as partial:
        partial.write_bytes(msgspec.json.encode(model) + b"\n")
