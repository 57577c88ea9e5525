"""What the verbs of `penstock patterns` share: a model, observations, and figures of both."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.learn.detection.evaluation import Scores
    from penstock.learn.detection.model import Model
    from penstock.learn.detection.samples import Sample

model = click.option(
    "--model",
    "model_file",
    metavar="MODEL.json",
    type=click.Path(path_type=Path),
    help="A model that 'penstock patterns train' made; else the one that comes with penstock.",
)
seed = click.option("--seed", type=int, default=1, show_default=True, help="Of all draws.")


def load(file: Path | None) -> "Model":
    """Return the model of a file, or the shipped one."""
    from penstock.learn.detection import model as models  # noqa: PLC0415 - --help stays quick

    return models.shipped() if file is None else models.load(file)


def observations(file: Path | None) -> "Sequence[Sample]":
    """Return the observations of a file, or the shipped ones."""
    from penstock.learn.detection import samples  # noqa: PLC0415

    return samples.shipped() if file is None else samples.read(file)


def of_sizes(found: "Sequence[Sample]", sizes: Sequence[int], flag: str) -> "list[Sample]":
    """Return the observations of these sizes; there must be some."""
    from penstock.learn.detection import samples  # noqa: PLC0415

    chosen = samples.of_sizes(found, sizes)
    if not chosen:
        there = ",".join(f"{size // 1024}KiB" for size in sorted({one.request for one in found}))
        raise InputError(f"{flag}: no observation has such requests; there are {there}")
    return chosen


def figures(scores: "Scores") -> dict[str, Any]:
    """Return how good a model is, for machines."""
    return {
        "observations": scores.observations,
        "unknown": sum(scores.unknown),
        "accuracy": scores.accuracy,
        "kappa": scores.kappa,
        "sensitivity": scores.sensitivity,
        "specificity": scores.specificity,
        "matrix": scores.matrix,
    }
