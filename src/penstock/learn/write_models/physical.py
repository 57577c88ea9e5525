"""What a machine's description alone says of a write: an estimate, before anything is measured.

Every stage with a bandwidth or a rate takes the busiest component's load over it. Operations
(metadata, ends of files) come first, in turn; data then goes through all other stages at once, and
the slowest decides. Bandwidths of a description are peaks or assumptions, others use the machine
too: what runs really take is within a factor that nobody knows. The interval has FACTOR either
way, without a probability, and `outside` says so.
"""

import math
from dataclasses import dataclass

from penstock.errors import InputError
from penstock.learn.write_models import loads
from penstock.learn.write_models.machine import OPERATIONS, Machine
from penstock.learn.write_models.parameters import bandwidth, parameters
from penstock.learn.write_models.prediction import Prediction
from penstock.model.write import Write

FACTOR = 3.0
UNMEASURED = "no run: it is from the machine's description, not from measurements"


@dataclass(slots=True, kw_only=True)
class Physical:
    """A model that was never trained."""

    machine: Machine

    def predict(self, write: Write) -> Prediction:
        """Return what the description makes of a write."""
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
    """Return how long each stage of a known bandwidth or rate is busy with a write."""
    busy: dict[str, float] = {}
    told = loads.loads(machine, parameters(machine, write))
    for stage, load in zip(machine.stage, told, strict=False):
        if pace := (stage.rate if stage.kind in OPERATIONS else bandwidth(stage)):
            busy[stage.name] = load / pace
    return busy
