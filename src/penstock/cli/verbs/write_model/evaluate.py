"""penstock write-model evaluate: the errors of a model on samples."""

from pathlib import Path

import click

from penstock.cli.common.output import emit_json, json_option
from penstock.cli.verbs.write_model import scores
from penstock.errors import InputError, error_prefix
from penstock.learn.write_models import model, samples


@click.command(short_help="Test a model on samples.")
@click.argument("model_file", metavar="MODEL.json", type=click.Path(path_type=Path))
@click.argument("file", metavar="SAMPLES.csv", type=click.Path(path_type=Path))
@click.option(
    "--shortest",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=5.0,
    show_default=True,
    help="Ignore shorter writes (paper, IV-A): caches hide them.",
)
@json_option
def evaluate(*, model_file: Path, file: Path, shortest: float, as_json: bool) -> None:
    """Test a model on SAMPLES.csv, which it should not have been trained on.

    \b
    Examples:
      penstock write-model evaluate model.json later.csv
      penstock write-model evaluate model.json later.csv --shortest 0 --json

    The error is (predicted - measured) / measured. A 90% interval should contain about 90% of the
    samples; 'outside' counts samples that lie outside of the model's training data.
    """
    learned = model.load(model_file)
    measured = samples.read_for(learned.machine, file)
    selected = [one for one in measured if one.seconds >= shortest]
    if not selected:
        raise InputError(f"{file}: no sample takes {shortest:g} s; --shortest 0 uses all")
    with error_prefix(file):
        result = scores.score(learned, selected, by_source=learned.model.tags != [""])
    if as_json:
        emit_json({"machine": learned.machine.name, "judged": result})
    else:
        scores.show(result, f"{learned.model.technique}, {learned.machine.name}")
