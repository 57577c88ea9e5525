"""penstock write-model evaluate: how good a model is on samples."""

from pathlib import Path

import click

from penstock.cli.common.output import emit_json, json_option
from penstock.cli.verbs.write_model import scores
from penstock.errors import InputError


@click.command(short_help="How good a model is.")
@click.argument("model_file", metavar="MODEL.json", type=click.Path(path_type=Path))
@click.argument("file", metavar="SAMPLES.csv", type=click.Path(path_type=Path))
@click.option(
    "--shortest",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=5.0,
    show_default=True,
    help="Writes that took less do not count (paper, IV-A): they hide in caches.",
)
@json_option
def evaluate(*, model_file: Path, file: Path, shortest: float, as_json: bool) -> None:
    """Judge a model by SAMPLES.csv, which it should not have been made of.

    \b
    Examples:
      penstock write-model evaluate model.json later.csv
      penstock write-model evaluate model.json later.csv --shortest 0 --json

    The error is (predicted - measured) / measured. A 90% interval should hold about 90% of the
    samples; 'outside' are those of which the model said that it had not seen their like.
    """
    from penstock.learn.write_models import model, samples  # noqa: PLC0415 - --help stays quick

    learned = model.load(model_file)
    read = samples.read_for(learned.machine, file)
    found = [one for one in read if one.seconds >= shortest]
    if not found:
        raise InputError(f"{file}: no sample takes {shortest:g} s; --shortest 0 takes all")
    try:
        judged = scores.of(learned, found, by_source=learned.model.tags != [""])
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
    if as_json:
        emit_json({"machine": learned.machine.name, "judged": judged})
    else:
        scores.show(judged, f"{learned.model.technique}, {learned.machine.name}")
