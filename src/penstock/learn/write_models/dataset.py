"""Samples as arrays, which models are fitted to, and the range of writes that they cover."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from penstock import units
from penstock.errors import InputError
from penstock.learn.convergence import Convergence
from penstock.learn.write_models.features import features, row
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.parameters import (
    Floats,
    loads,
    log_loads,
    parameters,
    stripe,
    width,
)
from penstock.learn.write_models.samples import SHORTEST, Sample, check
from penstock.model.write import Write

Ints = NDArray[np.int64]
FEWEST = 20
"""Minimum number of samples to learn from."""
UNSEEN_KIND = 1.0
"""Distance in octaves of a kind of write (shared or not, tag) that no sample has."""
CLOSE = 1e-6
CORES, BURST, ALL, STRIPE = "cores a node", "bytes of a burst", "bytes in all", "stripe size"
"""Names of axes, as model files store them."""
LABELS = {CORES: "cores per node", BURST: "burst size", ALL: "total size"}
"""What people read instead."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """Writes on one machine, each with its tag and its mean seconds.

    A tag is a property of a write that no parameter has, such as the I/O library: "" for none.
    """

    machine: Machine
    samples: tuple[Sample, ...]
    tags: tuple[str, ...]
    seconds: Floats
    weights: Floats
    """The weight of each mean: 1 if it is known exactly, a half if it has just converged."""
    features: Floats
    loads: Floats
    """Logarithms of the load of every stage."""

    @classmethod
    def from_samples(
        cls, machine: Machine, samples: Sequence[Sample], tags: Sequence[str] | None = None
    ) -> "Dataset":
        """Build the arrays; InputError for a sample of another machine."""
        for one in samples:
            check(one, machine)
        tags = tuple(tags) if tags is not None else ("",) * len(samples)
        if len(tags) != len(samples):
            raise InputError(f"{len(tags)} tags for {len(samples)} samples; give one for each")
        values, columns = [parameters(machine, one.write) for one in samples], features(machine)
        rows = np.array([row(columns, one) for one in values], np.float64)
        return cls(
            machine=machine,
            samples=tuple(samples),
            tags=tags,
            seconds=np.array([one.seconds for one in samples], np.float64),
            weights=np.array([_weight(one.times) for one in samples], np.float64),
            features=rows.reshape(-1, len(columns)),
            loads=log_loads(machine, [loads(machine, one) for one in values]),
        )

    def __len__(self) -> int:
        return len(self.samples)

    @cached_property
    def writes(self) -> tuple[Write, ...]:
        """Return the write of each sample."""
        return tuple(one.write for one in self.samples)

    @property
    def times(self) -> tuple[tuple[float, ...], ...]:
        """Return the times of each sample's runs."""
        return tuple(one.times for one in self.samples)

    def select(self, rows: NDArray[np.bool_] | Ints) -> "Dataset":
        """Return some of the samples."""
        places = np.arange(len(self))[rows]
        return Dataset(
            machine=self.machine,
            samples=tuple(self.samples[k] for k in places),
            tags=tuple(self.tags[k] for k in places),
            seconds=self.seconds[places],
            weights=self.weights[places],
            features=self.features[places],
            loads=self.loads[places],
        )

    def long_enough(self, shortest: float = SHORTEST) -> "Dataset":
        """Return the writes of at least `shortest` seconds (paper, IV-A: five)."""
        return self.select(self.seconds >= shortest)

    def converged(self) -> "Dataset":
        """Return the samples whose runs are enough to know the mean (paper, III-D)."""
        return self.select(np.array([one.converged() for one in self.samples], bool))

    def check(self) -> None:
        """Raise InputError if there are too few distinct samples to learn from."""
        distinct = len(set(zip(self.writes, self.tags, strict=True)))
        if distinct < FEWEST:
            raise InputError(
                f"{distinct} samples are too few to learn from; give {FEWEST} or more, "
                "of writes that differ"
            )

    @cached_property
    def scales(self) -> Ints:
        """Return the number of compute nodes of each write."""
        return np.array([write.nodes for write in self.writes], np.int64)

    @property
    def distinct_scales(self) -> list[int]:
        """Return the scales that occur, the smallest first."""
        return [int(scale) for scale in np.unique(self.scales)]

    @property
    def tag_names(self) -> list[str]:
        """Return the tags that occur, in order."""
        return sorted(set(self.tags))

    def matrix(self, tag_names: Sequence[str] | None = None) -> Floats:
        """Return the features, and a column of 0 and 1 for every tag but the first."""
        columns = (self.tag_names if tag_names is None else tag_names)[1:]
        tags = np.array([[tag == one for one in columns] for tag in self.tags], np.float64)
        return np.hstack([self.features, tags.reshape(len(self), len(columns))])

    def split(self, *, seed: int, part: float = 0.2) -> tuple["Dataset", "Dataset"]:
        """Split into training samples and held-out ones, `part` of every scale (III-C2)."""
        rng = np.random.default_rng(seed)
        held_out = np.zeros(len(self), bool)
        for scale in self.distinct_scales:
            places = rng.permutation(np.flatnonzero(self.scales == scale))
            held_out[places[: round(part * len(places))]] = True
        if not held_out.any():
            raise InputError("no scale has enough samples to hold some out; give more")
        return self.select(~held_out), self.select(held_out)


def _weight(times: Sequence[float]) -> float:
    """Return the weight of a mean: a half if its relative error is 10%, 1 if it is exact.

    A single run says nothing of its own error; it counts as if its mean had just converged.
    """
    rule = Convergence()
    error = rule.error(times) if len(times) > 1 else rule.within
    return 1 / (1 + (error / rule.within) ** 2)


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """The range of writes that a model was trained with."""

    axes: dict[str, tuple[float, float]]
    """The least and the most on each axis."""
    shared: list[bool]
    tags: list[str]

    @classmethod
    def from_dataset(cls, samples: Dataset) -> "Range":
        """Return the range of samples."""
        rows = [axes(samples.machine, write) for write in samples.writes]
        return cls(
            axes={
                name: (min(one[name] for one in rows), max(one[name] for one in rows))
                for name in rows[0]
            },
            shared=sorted({write.shared for write in samples.writes}),
            tags=samples.tag_names,
        )

    def outside(self, machine: Machine, write: Write, tag: str = "") -> dict[str, float]:
        """Return every respect in which a write is outside, with the distance in octaves.

        Total bytes count only beyond what nodes, cores and bursts already explain.
        """
        result: dict[str, float] = {}
        for name, value in axes(machine, write).items():
            low, high = self.axes[name]
            octaves = max(math.log2(value / high), math.log2(low / value))
            if octaves > CLOSE:
                explained = sum(result.values()) if name == ALL else 0.0
                at, least, most = (show(name, number) for number in (value, low, high))
                text = f"{LABELS.get(name, name)} {at}, seen {least} to {most}"
                result[text] = max(octaves - explained, 0.0)
        if write.shared not in self.shared:
            result["one file for all" if write.shared else "a file for each process"] = UNSEEN_KIND
        if tag not in self.tags:
            result[f"tag {tag!r}, seen {', '.join(map(repr, self.tags))}"] = UNSEEN_KIND
        return result


def axes(machine: Machine, write: Write) -> Mapping[str, float]:
    """Return a write's position on every axis along which writes differ."""
    result: dict[str, float] = {
        "nodes": write.nodes,
        CORES: write.cores,
        BURST: write.burst,
        ALL: write.bytes,
    }
    if machine.striping.selectable:
        result |= {"stripe count": width(machine, write), STRIPE: stripe(machine, write)}
    return result


def show(axis: str, value: float) -> str:
    """Return a position on an axis as text, with its unit."""
    return units.show_volume(value) if axis in {BURST, ALL, STRIPE} else f"{value:g}"


def distance(outside: Mapping[str, float]) -> float:
    """Return how far outside a write is: the sum of octaves over all respects."""
    return sum(outside.values())
