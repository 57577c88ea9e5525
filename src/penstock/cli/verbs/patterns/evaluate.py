"""penstock patterns evaluate: how good a model is."""

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.verbs.patterns import options
from penstock.cli.verbs.patterns.measure import sizes_of
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.learn.detection.evaluation import Scores
    from penstock.learn.detection.model import Model
    from penstock.learn.detection.samples import Sample


@click.command(short_help="Hold a model against observations.")
@click.argument("file", metavar="[SEEN.csv]", required=False, type=click.Path(path_type=Path))
@options.model
@click.option(
    "--sizes", metavar="SIZE,...", help="Of requests; else all that the model has never seen."
)
@click.option("--several-clients", is_flag=True, help="Only runs with several clients an I/O node.")
@json_option
def evaluate(
    *,
    file: Path | None,
    model_file: Path | None,
    sizes: str | None,
    several_clients: bool,
    as_json: bool,
) -> None:
    """Ask a model for the pattern of observations whose pattern is known, and count.

    \b
    Examples:
      penstock patterns evaluate                                   the shipped model and data
      penstock patterns evaluate seen.csv --model model.json
      penstock patterns evaluate --sizes 32KiB --several-clients

    Accuracy and kappa are of what the model says; where it says "unknown" is counted apart.
    """
    from penstock.learn.detection import evaluation  # noqa: PLC0415 - --help stays quick

    model = options.load(model_file)
    found = options.observations(file)
    seen = set(model.made.get("sizes", ()))
    wanted = sizes_of(sizes) or sorted({one.request for one in found} - seen)
    chosen = options.of_sizes(found, wanted, "--sizes")
    if several_clients:
        chosen = evaluation.several_clients(chosen)
        if not chosen:
            raise InputError("no run has several clients an I/O node; leave --several-clients out")
    scores = evaluation.of_model(model, chosen)
    seconds = _seconds(model, chosen)
    if as_json:
        figures = options.figures(scores)
        emit_json({"sizes": wanted, "classes": model.classes, "seconds": seconds} | figures)
    else:
        _show(model, scores, wanted, seconds)


def _seconds(model: "Model", chosen: "Sequence[Sample]") -> float:
    """Return what one observation takes: the median, which a busy machine moves least."""
    taken = []
    for one in chosen:
        began = time.perf_counter()
        model.detect(one.observation)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def _show(model: "Model", scores: "Scores", sizes: Sequence[int], seconds: float) -> None:
    of = ", ".join(f"{size / 1024:g}" for size in sizes)
    click.echo(f"a {model.kind}, on {scores.observations} observations of {of} KiB requests")
    click.echo(
        f"says something of {scores.coverage:.1%}: accuracy {scores.accuracy:.4f}, "
        f"kappa {scores.kappa:.4f}; {1e6 * seconds:.1f} us an observation\n"
    )
    rows = [
        (name, *map(str, row), str(unknown), f"{sensitivity:.4f}", f"{specificity:.4f}")
        for name, row, unknown, sensitivity, specificity in zip(
            model.classes,
            scores.matrix,
            scores.unknown,
            scores.sensitivity,
            scores.specificity,
            strict=True,
        )
    ]
    columns = ("is \\ said", *model.classes, "unknown", "sensitivity", "specificity")
    emit_table(columns, rows)
