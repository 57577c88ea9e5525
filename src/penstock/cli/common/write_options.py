"""The write that `predict` and `advise` are about: from options, or from a Darshan log."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import click

from penstock import units
from penstock.cli.common.options import PATH, option
from penstock.cli.common.terminal import echo
from penstock.errors import InputError, error_prefix
from penstock.learn.write_models import from_darshan
from penstock.learn.write_models.candidates import LUSTRE_UNIT, on_lustre
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.model import open_model
from penstock.learn.write_models.prediction import Prediction, WriteModel
from penstock.learn.write_models.samples import parse_ranges
from penstock.model.write import Write
from penstock.sim.formats import darshan


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """A write and its machine, as `predict` and `advise` take them."""

    machine: Annotated[
        str | None,
        option(
            "--machine",
            metavar="NAME",
            help="A machine that 'penstock machines' lists, or a description of your own, "
            "NAME.toml.",
        ),
    ]
    model_file: Annotated[
        Path | None,
        option(
            "--model",
            metavar="MODEL.json",
            type=PATH,
            help="A model from 'penstock write-model train'; by default only the machine's "
            "description is used.",
        ),
    ]
    tag: Annotated[
        str | None,
        option(
            "--tag",
            metavar="NAME",
            help="The source of samples to predict for, if the model was trained by source "
            "('benchio, HDF5').",
        ),
    ]
    log: Annotated[
        Path | None,
        option(
            "--log",
            metavar="LOG.darshan",
            type=PATH,
            help="Use the largest write of this run; other options override its values.",
        ),
    ]
    nodes: Annotated[
        int | None,
        option("--nodes", metavar="N", type=int, help="m: the number of compute nodes that write."),
    ]
    cores: Annotated[
        int | None,
        option(
            "--cores",
            metavar="N",
            type=int,
            help="n: the number of processes per node that write; with --log, if the log lacks it.",
        ),
    ]
    burst: Annotated[
        str | None,
        option("--burst", metavar="SIZE", help="K: bytes that each process writes ('100 MB')."),
    ]
    shared: Annotated[
        bool | None,
        option(
            "--shared/--file-each",
            default=None,
            help="Write one file for all processes, or one file per process.",
        ),
    ]
    stripe_count: Annotated[
        int | None,
        option(
            "--stripe-count",
            metavar="N",
            type=click.IntRange(1),
            help="The number of storage targets per file.",
        ),
    ]
    stripe_size: Annotated[
        str | None, option("--stripe-size", metavar="SIZE", help="The stripe size ('4 MiB').")
    ]
    placement: Annotated[
        str | None,
        option(
            "--placement",
            metavar="NUMBERS",
            help="The job's nodes on the machine ('0-63 128-191'); by default 0, 1, 2, ...",
        ),
    ]

    def model(self) -> WriteModel:
        """Return the model of --model, or one of the machine's description alone."""
        return open_model(self.machine, self.model_file, self.tag)

    def write(self, machine: Machine) -> tuple[Write, list[str]]:
        """Return the write, and notes on what was assumed."""
        values = self._values()
        if on_lustre(machine) and values.get("stripe_size", 0) % LUSTRE_UNIT:
            raise InputError(f"--stripe-size {self.stripe_size}: Lustre needs a multiple of 64 KiB")
        write, notes = self._write(machine, values)
        if write.nodes > 1 and not write.placement and any(machine.groups):
            shared = ", ".join(stage.name for stage in machine.groups)
            notes.append(
                "assumes the nodes 0, 1, 2, ..., because neighbours share components "
                f"({shared}); use --placement for others"
            )
        return write, notes

    def _write(self, machine: Machine, values: dict[str, Any]) -> tuple[Write, list[str]]:
        if self.log is not None:
            return from_darshan.largest_write(darshan.read(self.log), machine, values)
        missing = [f"--{name}" for name in ("nodes", "cores", "burst") if name not in values]
        if missing:
            raise InputError(f"{' and '.join(missing)} missing; give them, or --log")
        return Write(**values), []

    @property
    def inputs(self) -> tuple[Path | str | None, ...]:
        """The files that are read, which no result may overwrite."""
        own = self.machine is not None and self.machine.endswith(".toml")
        return (self.log, self.model_file, self.machine if own else None)

    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "nodes": self.nodes,
            "cores": self.cores,
            "shared": self.shared,
            "stripe_count": self.stripe_count,
        }
        for name, parse in (
            ("burst", units.volume),
            ("stripe_size", units.volume),
            ("placement", parse_ranges),
        ):
            with error_prefix(f"--{name.replace('_', '-')}"):
                text = getattr(self, name)
                values[name] = None if text is None else parse(text)
        return {name: value for name, value in values.items() if value is not None}


def write_fields(write: Write) -> dict[str, Any]:
    """Return a write for --json."""
    return {field.name: getattr(write, field.name) for field in fields(write)} | {
        "bytes": write.bytes
    }


def figures(prediction: Prediction) -> dict[str, Any]:
    """Return a prediction for --json."""
    return {
        "seconds": prediction.seconds,
        "low": prediction.low,
        "high": prediction.high,
        "run": None if prediction.run is None else list(prediction.run),
        "coverage": prediction.sure,
        "simulated": bool(prediction.origin),
        "outside": list(prediction.outside),
        "stages": None if prediction.stages is None else dict(prediction.stages),
        "dominant": dominant(prediction),
    }


def dominant(prediction: Prediction) -> str | None:
    """Return the stage that takes the largest part of the time."""
    return next(iter(prediction.stages), None) if prediction.stages else None


def describe(write: Write) -> str:
    """Return a write as text."""
    where = "one shared file" if write.shared else "one file per process"
    stripes = "" if write.stripe_count is None else f", stripe count {write.stripe_count}"
    stripes += "" if write.stripe_size is None else f" of {units.show_volume(write.stripe_size)}"
    return (
        f"{write.nodes:,} nodes x {write.cores} processes, "
        f"{units.show_volume(write.burst)} each, {where}{stripes}"
    )


def interval(prediction: Prediction) -> str:
    """Return a predicted time with its interval, as text."""
    return between(prediction.seconds, prediction.low, prediction.high, confidence(prediction))


def confidence(prediction: Prediction) -> str:
    """Return the probability of an interval as text; a guess outside of the training data."""
    return ", a guess" if prediction.sure is None else f" with {prediction.sure:.0%}"


def between(seconds: float, low: float, high: float, confidence: str = "") -> str:
    """Return a time and its limits as text."""
    show = units.show_seconds
    return f"{show(seconds)} ({show(low)} to {show(high)}{confidence})"


def show_notes(prediction: Prediction, notes: list[str]) -> None:
    """Print notes on what was assumed, and what lies outside of the model's training data."""
    for note in [*notes, *filter(None, [prediction.origin])]:
        echo(f"note       {note}")
    for respect in prediction.outside:
        echo(f"outside    {respect}")
