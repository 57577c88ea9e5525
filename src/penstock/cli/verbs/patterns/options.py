"""Options of the verbs of `penstock patterns`: a model, observations, and their scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from penstock.errors import InputError
from penstock.learn.detection import model as models
from penstock.learn.detection import samples
from penstock.learn.detection.evaluation import Scores
from penstock.learn.detection.model import Model
from penstock.learn.detection.samples import Sample

model = click.option(
    "--model",
    "model_file",
    metavar="MODEL.json",
    type=click.Path(path_type=Path),
    help="A model from 'penstock patterns train'; by default the shipped one.",
)
seed = click.option(
    "--seed",
    metavar="N",
    type=int,
    default=1,
    show_default=True,
    help="The seed of random numbers.",
)


def load(file: Path | None) -> Model:
    """Return the model of a file, or the shipped one."""
    return models.shipped() if file is None else models.load(file)


def observations(file: Path | None) -> Sequence[Sample]:
    """Return the observations of a file, or the shipped ones."""
    return samples.shipped() if file is None else samples.read(file)


def with_sizes(observations: Sequence[Sample], sizes: Sequence[int], flag: str) -> list[Sample]:
    """Return the observations with these request sizes; InputError if no observation has one."""
    selected = samples.of_sizes(observations, sizes)
    if not selected:
        present = sorted({one.request for one in observations})
        listed = ",".join(f"{size // 1024}KiB" for size in present)
        raise InputError(f"{flag}: no observation has such requests; give some of {listed}")
    return selected


def figures(scores: Scores) -> dict[str, Any]:
    """Return the scores of a model for --json."""
    return {
        "observations": scores.observations,
        "unknown": sum(scores.unknown),
        "accuracy": scores.accuracy,
        "kappa": scores.kappa,
        "sensitivity": scores.sensitivity,
        "specificity": scores.specificity,
        "matrix": scores.matrix,
    }
