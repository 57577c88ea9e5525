"""penstock patterns: detecting access patterns from what I/O nodes observe."""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import msgspec

from penstock import __version__
from penstock.cli.common import live_options, options
from penstock.cli.common.options import PATH
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.terminal import echo
from penstock.cli.verbs.patterns.measure import measure
from penstock.errors import InputError, unknown
from penstock.files import check_writable
from penstock.learn.detection import evaluation, samples, training
from penstock.learn.detection import features as feature_table
from penstock.learn.detection import model as models
from penstock.learn.detection.evaluation import Scores
from penstock.learn.detection.model import Model
from penstock.learn.detection.samples import Sample
from penstock.learn.trees import Tree

SEVERAL_CLIENTS = "validated, several clients an I/O node"
"""A key of the model file and of --json, so it stays as it is."""

model_option = click.option(
    "--model",
    "model_file",
    metavar="MODEL.json",
    type=PATH,
    help="A model from 'penstock patterns train'; by default the shipped one.",
)


@click.group(no_args_is_help=False)
def patterns() -> None:
    """Detect access patterns from what I/O nodes observe; docs/live/patterns.md is the guide.

    \b
    Examples:
      penstock patterns show                                 show the model that is shipped
      penstock patterns evaluate                             test it on other request sizes
      penstock patterns measure --out seen.csv               measure observations of your own
      penstock patterns train seen.csv --out model.json      train a model on them
    """


patterns.add_command(measure)


def _load(file: Path | None) -> Model:
    """Return the model of a file, or the shipped one."""
    return models.shipped() if file is None else models.load(file)


def _observations(file: Path | None) -> Sequence[Sample]:
    """Return the observations of a file, or the shipped ones."""
    return samples.shipped() if file is None else samples.read(file)


def _with_sizes(observations: Sequence[Sample], sizes: Sequence[int], flag: str) -> list[Sample]:
    """Return the observations with these request sizes; InputError if no observation has one."""
    selected = samples.of_sizes(observations, sizes)
    if not selected:
        present = sorted({one.request for one in observations})
        listed = ",".join(f"{size // 1024}KiB" for size in present)
        raise InputError(f"{flag}: no observation has such requests; give some of {listed}")
    return selected


def _figures(scores: Scores) -> dict[str, Any]:
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


@patterns.command(short_help="Train a model on observations.")
@click.argument("file", metavar="[SEEN.csv]", required=False, type=PATH)
@click.option("--out", metavar="MODEL.json", required=True, type=PATH, help="The file to write.")
@click.option(
    "--kind",
    type=click.Choice(["tree", "forest", "network"]),
    default="network",
    show_default=True,
    help="CART, a random forest, or a perceptron with one hidden layer.",
)
@click.option(
    "--features",
    metavar="NAME,...",
    help="The features: names, or 'thesis'; by default the strongest of those without a unit.",
)
@click.option(
    "--sizes", metavar="SIZE,...", help="Request sizes to train on; default: 32KiB,256KiB."
)
@click.option(
    "--trees",
    metavar="N",
    type=click.IntRange(1, 2000),
    default=50,
    show_default=True,
    help="The number of trees of a forest.",
)
@options.seed("seed")
@json_option
def train(
    *,
    file: Path | None,
    out: Path,
    kind: Any,
    features: str | None,
    sizes: str | None,
    trees: int,
    seed: int,
    as_json: bool,
) -> None:
    """Train a detector of access patterns on SEEN.csv, or on the shipped observations.

    \b
    Examples:
      penstock patterns train --out model.json
      penstock patterns train seen.csv --out model.json --kind tree
      penstock patterns train --out thesis.json --features thesis

    It is trained on 70% of the observations with request sizes of --sizes, tested on the rest of
    them, and validated on all other request sizes. The model is a JSON file of arrays; using it
    needs no other package.
    """
    check_writable(out)
    observations = _observations(file)
    requests = live_options.sizes(sizes) or samples.TRAINED_ON
    selected = _with_sizes(observations, requests, "--sizes")
    names = _features(features, selected)
    first, second = training.split(selected, seed=seed)
    others = [one for one in observations if one.request not in requests]
    trained = training.train(first, kind, names, seed=seed, trees=trees)
    scores = {
        "tested": evaluation.model_scores(trained.model, second),
        "validated": evaluation.model_scores(trained.model, others),
        SEVERAL_CLIENTS: evaluation.model_scores(trained.model, evaluation.several_clients(others)),
    }
    provenance = {
        "penstock": __version__,
        "scikit-learn": training.version(),
        "observations": len(first),
        "of": samples.SHIPPED if file is None else file.name,
        "sizes": sorted(requests),
        "seed": seed,
        **{
            name: {"accuracy": round(s.accuracy, 5), "said": s.answered, "of": s.observations}
            for name, s in scores.items()
        },
    }
    models.save(msgspec.structs.replace(trained.model, provenance=provenance), out)
    if as_json:
        result = {name: _figures(s) for name, s in scores.items()}
        emit_json({"out": str(out), "kind": kind, "features": names} | result)
    else:
        _show_training(out, kind, names, scores)


def _features(text: str | None, observations: Any) -> list[str]:
    if text is None:
        return feature_table.select(observations)
    names = list(feature_table.THESIS) if text == "thesis" else [n.strip() for n in text.split(",")]
    for name in names:
        if name not in feature_table.FEATURES:
            raise unknown("feature", name, [*feature_table.FEATURES, "thesis"])
    return list(dict.fromkeys(names))


def _show_training(out: Path, kind: str, names: list[str], scores: dict[str, Scores]) -> None:
    echo(f"{out}: a {kind} with the features {', '.join(names)}\n")
    rows = [
        (
            name,
            str(s.observations),
            str(sum(s.unknown)),
            f"{s.accuracy:.4f}" if s.answered else "-",
            f"{s.kappa:.4f}" if s.answered else "-",
        )
        for name, s in scores.items()
    ]
    emit_table(("", "observations", "unknown", "accuracy", "kappa"), rows)
    echo(f"\nnext: penstock patterns evaluate --model {out}")


@patterns.command(short_help="Test a model on observations.")
@click.argument("file", metavar="[SEEN.csv]", required=False, type=PATH)
@model_option
@click.option(
    "--sizes",
    metavar="SIZE,...",
    help="Request sizes; by default all that the model was not trained on.",
)
@click.option(
    "--several-clients", is_flag=True, help="Only runs with several clients per I/O node."
)
@click.option(
    "--off-grid", is_flag=True, help="On accesses that no model was trained with, by kind."
)
@json_option
def evaluate(
    *,
    file: Path | None,
    model_file: Path | None,
    sizes: str | None,
    several_clients: bool,
    off_grid: bool,
    as_json: bool,
) -> None:
    """Test a model on observations whose access pattern is known.

    \b
    Examples:
      penstock patterns evaluate                                   test the shipped model
      penstock patterns evaluate seen.csv --model model.json
      penstock patterns evaluate --sizes 32KiB --several-clients
      penstock patterns evaluate --off-grid                        random offsets, mixed jobs, ...

    Accuracy and kappa are of the answers; answers of "unknown" are counted separately.
    """
    model = _load(model_file)
    if off_grid:
        if sizes or several_clients:
            raise InputError("--off-grid goes with --model; leave out --sizes, --several-clients")
        _evaluate_off_grid(model, file, as_json=as_json)
        return
    observations = _observations(file)
    trained = set(model.provenance.get("sizes", ()))
    requests = live_options.sizes(sizes) or sorted({one.request for one in observations} - trained)
    selected = _with_sizes(observations, requests, "--sizes")
    if several_clients:
        selected = evaluation.several_clients(selected)
        if not selected:
            raise InputError("no run has several clients per I/O node; leave out --several-clients")
    scores = evaluation.model_scores(model, selected)
    seconds = _seconds(model, selected)
    if as_json:
        figures = _figures(scores)
        emit_json({"sizes": requests, "classes": model.classes, "seconds": seconds} | figures)
    else:
        _show_scores(model, scores, requests, seconds)


def _evaluate_off_grid(model: Model, file: Path | None, *, as_json: bool) -> None:
    """Show the answers by kind of access, beside those of the model without streams."""
    observations = samples.off_grid() if file is None else samples.OFF_GRID.read(file)
    detected = evaluation.off_grid_scores(observations, model.detect)
    alone = evaluation.off_grid_scores(observations, model.classify)
    if as_json:
        emit_json(
            {"detected": list(map(asdict, detected)), "model alone": list(map(asdict, alone))}
        )
        return
    rows = [
        (d.kind, d.pattern, *map(str, (d.right, d.unknown, d.wrong, a.right, a.unknown, a.wrong)))
        for d, a in zip(detected, alone, strict=True)
    ]
    columns = ("right", "unknown", "wrong")
    emit_table(
        ("access", "pattern", *columns, *(f"{name} alone" for name in columns)),
        rows,
        text={"pattern"},
    )
    echo("\nalone: by the model without a look at streams")


def _seconds(model: Model, samples: Sequence[Sample]) -> float:
    """Return the time per observation: the median, which a busy machine affects least."""
    times = []
    for one in samples:
        began = time.perf_counter()
        model.classify(one.observation)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _show_scores(model: Model, scores: Scores, sizes: Sequence[int], seconds: float) -> None:
    listed = ", ".join(f"{size / 1024:g}" for size in sizes)
    echo(f"a {model.kind}, on {scores.observations} observations of {listed} KiB requests")
    echo(
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


@patterns.command(short_help="Show a model's features and training data.")
@model_option
@json_option
def show(*, model_file: Path | None, as_json: bool) -> None:
    """Show a model: its kind, its features, how it decides, and its training data.

    \b
    Examples:
      penstock patterns show
      penstock patterns show --model model.json --json

    A tree is shown completely: the conditions of each pattern, and their confidence.
    """
    model = _load(model_file)
    if as_json:
        emit_json(
            {
                "kind": model.kind,
                "version": model.version,
                "features": model.features,
                "classes": model.classes,
                "least_requests": model.least_requests,
                "least_confidence": model.least_confidence,
                "nodes": sum(len(tree.feature) for tree in model.trees),
                "made": model.provenance,
            }
        )
        return
    echo(f"a {model.kind} of version {model.version}")
    echo(f"features   {', '.join(model.features)}")
    echo(f"patterns   {', '.join(model.classes)}")
    echo(
        f"unknown    below {model.least_requests} requests, or a confidence of "
        f"{model.least_confidence:g}"
    )
    for name, value in model.provenance.items():
        echo(f"{name}: {_plain(value)}")
    if model.kind == "tree":
        echo("\n" + "\n".join(_rules(model, model.trees[0])))


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items())
    return ", ".join(map(_plain, value)) if isinstance(value, list) else str(value)


def _rules(model: Model, tree: Tree, node: int = 0, indent: str = "") -> Iterator[str]:
    at = tree.feature[node]
    if at < 0:
        confidence = max(tree.shares[node])
        name = model.classes[tree.shares[node].index(confidence)]
        certain = confidence >= model.least_confidence
        yield f"{indent}{name if certain else 'unknown'} ({confidence:.2f})"
        return
    name, threshold = model.features[at], tree.threshold[node]
    yield f"{indent}{name} <= {threshold:.4g}"
    yield from _rules(model, tree, tree.left[node], indent + "    ")
    yield f"{indent}{name} > {threshold:.4g}"
    yield from _rules(model, tree, tree.right[node], indent + "    ")
