"""The model that is meant: one of a file, else what a machine's description says by itself."""

from pathlib import Path

from penstock.errors import InputError
from penstock.learn.write_models import machine as machines
from penstock.learn.write_models.physical import Physical
from penstock.learn.write_models.prediction import WriteModel


def model(machine: str | None, file: Path | None) -> WriteModel:
    """Return a model of a machine (a name, or a TOML file), or the one in a file."""
    if file is not None:
        raise InputError(f"{file}: no models yet")
    if machine is None:
        raise InputError("neither a machine nor a model; 'penstock machines' lists the machines")
    return Physical(machine=machines.load(machine))
