"""What a model says of a write; models and the verbs that use them meet here."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from penstock.learn.write_models.machine import Machine
from penstock.model.write import Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The time that a write takes on average, how sure that is, and what one run may take."""

    seconds: float
    low: float
    high: float
    """Between these the average of many runs is, with a probability of `coverage`."""
    coverage: float
    """NaN: nobody knows. Nothing vouches for it where the write is outside."""
    outside: tuple[str, ...] = ()
    """In which respects the write is not like those that the model has seen: then it is a guess,
    and the interval is wider."""
    stages: Mapping[str, float] | None = None
    """The part of the time by stage, the largest first; None: the model does not know."""
    run: tuple[float, float] | None = None
    """Between these a single run is, with that probability; None: the model does not know."""
    origin: str = ""
    """What is to be known of the samples that the model was made of: that some were simulated."""

    @property
    def sure(self) -> float | None:
        """Return the probability that something vouches for, if any does."""
        return None if self.outside or math.isnan(self.coverage) else self.coverage


class WriteModel(Protocol):
    """A model of a machine."""

    machine: Machine

    def predict(self, write: Write) -> Prediction:
        """Return what a write takes; InputError for one that the machine cannot do."""
        ...
