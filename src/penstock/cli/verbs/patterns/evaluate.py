"""penstock patterns evaluate: the accuracy of a model."""

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import click

from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.verbs.patterns import options
from penstock.cli.verbs.patterns.measure import sizes_of
from penstock.errors import InputError
from penstock.learn.detection import evaluation
from penstock.learn.detection.evaluation import Scores
from penstock.learn.detection.model import Model
from penstock.learn.detection.samples import Sample


@click.command(short_help="Test a model on observations.")
@click.argument("file", metavar="[SEEN.csv]", required=False, type=click.Path(path_type=Path))
@options.model
@click.option(
    "--sizes",
    metavar="SIZE,...",
    help="Request sizes; by default all that the model was not trained on.",
)
@click.option(
    "--several-clients", is_flag=True, help="Only runs with several clients per I/O node."
)
@json_option
def evaluate(
    *,
    file: Path | None,
    model_file: Path | None,
    sizes: str | None,
    several_clients: bool,
    as_json: bool,
) -> None:
    """Test a model on observations whose access pattern is known.

    \b
    Examples:
      penstock patterns evaluate                                   test the shipped model
      penstock patterns evaluate seen.csv --model model.json
      penstock patterns evaluate --sizes 32KiB --several-clients

    Accuracy and kappa are of the answers; answers of "unknown" are counted separately.
    """
    model = options.load(model_file)
    observations = options.observations(file)
    trained = set(model.provenance.get("sizes", ()))
    requests = sizes_of(sizes) or sorted({one.request for one in observations} - trained)
    selected = options.with_sizes(observations, requests, "--sizes")
    if several_clients:
        selected = evaluation.several_clients(selected)
        if not selected:
            raise InputError("no run has several clients per I/O node; leave out --several-clients")
    scores = evaluation.model_scores(model, selected)
    seconds = _seconds(model, selected)
    if as_json:
        figures = options.figures(scores)
        emit_json({"sizes": requests, "classes": model.classes, "seconds": seconds} | figures)
    else:
        _show(model, scores, requests, seconds)


def _seconds(model: Model, samples: Sequence[Sample]) -> float:
    """Return the time per observation: the median, which a busy machine affects least."""
    times = []
    for one in samples:
        began = time.perf_counter()
        model.detect(one.observation)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _show(model: Model, scores: Scores, sizes: Sequence[int], seconds: float) -> None:
    listed = ", ".join(f"{size / 1024:g}" for size in sizes)
    click.echo(f"a {model.kind}, on {scores.observations} observations of {listed} KiB requests")
    click.echo(
        f"answers {scores.coverage:.1%} of them: accuracy {scores.accuracy:.4f}, "
        f"kappa {scores.kappa:.4f}; {1e6 * seconds:.1f} us per observation\n"
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
    columns = ("actual \\ detected", *model.classes, "unknown", "sensitivity", "specificity")
    emit_table(columns, rows)
