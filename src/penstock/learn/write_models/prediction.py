"""What a model says of a write, and the model that needs no measurement: `Physical`.

`Physical` knows the machine's description alone. Every stage with a bandwidth or a rate takes the
busiest component's load over it. Operations (metadata, ends of files) come first, in turn; data
then flows through all other stages at once, and the slowest decides. Bandwidths of a description
are peaks or assumptions, and other jobs use the machine too, so that real runs differ by an unknown
factor: the interval is FACTOR in both directions, without a probability, and `outside` says so.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from penstock.errors import InputError
from penstock.learn.write_models.machine import OPERATIONS, Machine
from penstock.learn.write_models.parameters import bandwidth, loads, parameters
from penstock.model.write import Write

FACTOR = 3.0
UNMEASURED = "no run: it is from the machine's description, not from measurements"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The mean time of a write, its interval, and the interval of a single run."""

    seconds: float
    low: float
    high: float
    """The mean of many runs is between these with probability `coverage`."""
    coverage: float
    """NaN if unknown. It does not hold where the write is `outside`."""
    outside: tuple[str, ...] = ()
    """The respects in which the write is unlike the model's samples: the prediction is then a
    guess, with a wider interval."""
    stages: Mapping[str, float] | None = None
    """Each stage's fraction of the time, the largest first; None if the model cannot say."""
    run: tuple[float, float] | None = None
    """A single run is between these with that probability; None if the model cannot say."""
    origin: str = ""
    """A note on the model's samples: that some were simulated."""

    @property
    def sure(self) -> float | None:
        """Return the probability of the interval, or None if it is not warranted."""
        return None if self.outside or math.isnan(self.coverage) else self.coverage


class WriteModel(Protocol):
    """A model of the writes of one machine."""

    machine: Machine

    def predict(self, write: Write) -> Prediction:
        """Predict a write; InputError for one that the machine cannot do."""
        ...


@dataclass(slots=True, kw_only=True)
class Physical:
    """A model made from a machine's description, without training."""

    machine: Machine

    def predict(self, write: Write) -> Prediction:
        """Predict a write from the description."""
        operations = {s.name for s in self.machine.stage if s.kind in OPERATIONS}
        busy = stage_seconds(self.machine, write)
        data = [t for name, t in busy.items() if name not in operations]
        if not data:
            raise InputError(
                f"{self.machine.name} has no stage with a bandwidth; describe some, or give a model"
            )
        seconds = math.fsum(busy[name] for name in operations & busy.keys()) + max(data)
        ordered = sorted(busy.items(), key=lambda pair: -pair[1])
        return Prediction(
            seconds=seconds,
            low=seconds / FACTOR,
            high=seconds * FACTOR,
            coverage=math.nan,
            outside=(UNMEASURED,),
            stages={name: t / seconds for name, t in ordered},
        )


def stage_seconds(machine: Machine, write: Write) -> dict[str, float]:
    """Return how long a write keeps each stage of known bandwidth or rate busy."""
    busy: dict[str, float] = {}
    by_stage = loads(machine, parameters(machine, write))
    for stage, load in zip(machine.stage, by_stage, strict=False):
        if rate := (stage.rate if stage.kind in OPERATIONS else bandwidth(stage)):
            busy[stage.name] = load / rate
    return busy
