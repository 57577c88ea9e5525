"""The model that is meant: one of a file, else what a machine's description says by itself."""

import copy
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import InputError, unknown
from penstock.learn.write_models import machine as machines
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.model import Learned, load
from penstock.learn.write_models.physical import Physical
from penstock.learn.write_models.prediction import Prediction, WriteModel
from penstock.model.write import Write


@dataclass(slots=True)
class Tagged:
    """A model that is always asked about one kind of its samples."""

    learned: Learned
    tag: str
    machine: Machine

    def predict(self, write: Write) -> Prediction:
        """Return what a write of that kind takes."""
        asked = copy.copy(self.learned)
        asked.machine = self.machine
        return asked.predict(write, tag=self.tag)


def model(machine: str | None, file: Path | None, tag: str | None = None) -> WriteModel:
    """Return a model of a machine (a name, or a TOML file), or the one in a file."""
    if file is None:
        if machine is None:
            raise InputError(
                "neither a machine nor a model; 'penstock machines' lists the machines"
            )
        if tag is not None:
            raise InputError(f"tag {tag!r}: only a model has tags; give one")
        return Physical(machine=machines.load(machine))
    learned = load(file)
    if machine is not None and machines.load(machine).name != learned.machine.name:
        raise InputError(f"{file} is a model of {learned.machine.name!r}, not of {machine!r}")
    if tag is None:
        return learned
    if tag not in learned.model.tags:
        raise unknown(f"tag of {file}", tag, learned.model.tags)
    return Tagged(learned, tag, learned.machine)
