"""What a machine's description alone says of a write: an estimate, before anything is measured.

Every stage with a bandwidth or a rate takes the busiest component's load over it. Operations
(metadata, ends of files) come first, in turn; data then goes through all other stages at once, and
the slowest decides. Bandwidths of a description are peaks or assumptions, others use the machine
too: what runs really take is within a factor that nobody knows. The interval has FACTOR either
way, without a probability, and `outside` says so.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.errors import InputError
from penstock.learn.write_models.machine import Machine, Stage
from penstock.learn.write_models.parameters import bandwidth, parameters
from penstock.learn.write_models.prediction import Prediction
from penstock.model.write import Write

FACTOR = 3.0
UNMEASURED = "no run: it is from the machine's description, not from measurements"
OPERATIONS = ("metadata", "subblocks")


@dataclass(slots=True, kw_only=True)
class Physical:
    """A model that was never trained."""

    machine: Machine

    def predict(self, write: Write) -> Prediction:
        """Return what the description makes of a write."""
        busy = stage_seconds(self.machine, write)
        if not busy:
            raise InputError(
                f"{self.machine.name} has no stage with a bandwidth or a rate; "
                "describe some, or give a model"
            )
        operations = {s.name for s in self.machine.stage if s.kind in OPERATIONS}
        first = math.fsum(t for name, t in busy.items() if name in operations)
        seconds = first + max((t for name, t in busy.items() if name not in operations), default=0)
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
    """Return how long each stage of a known bandwidth or rate is busy with a write."""
    found = parameters(machine, write)
    busy: dict[str, float] = {}
    for stage in machine.stage:
        if stage.kind in OPERATIONS:
            if stage.rate is not None:
                busy[stage.name] = _operations(stage, found, write) / stage.rate
        elif pace := bandwidth(stage):
            busy[stage.name] = _load(stage, found, write) / pace
    return busy


def _operations(stage: Stage, found: Mapping[str, float], write: Write) -> float:
    """Return the operations that one sender has to have done, or all where there is none."""
    senders = found[f"s_{stage.through}"] * write.cores if stage.through else write.files
    each = found["n_sub"] if stage.kind == "subblocks" else 1.0
    return (write.files if write.shared else senders) * each


def _load(stage: Stage, found: Mapping[str, float], write: Write) -> float:
    """Return the bytes of the busiest component."""
    match stage.kind:
        case "node":
            return write.cores * write.burst
        case "group":
            return found[f"s_{stage.symbol}"] * write.cores * write.burst
        case "server" | "target":
            if stage.skewed:
                return found[f"s_{stage.symbol}"]
            return write.bytes / found[f"n_{stage.symbol}"]
        case _:
            return write.bytes
