"""penstock patterns train: train a model on observations."""

from pathlib import Path
from typing import Any

import click

from penstock import __version__
from penstock.cli.common.options import PATH
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.verbs.patterns import options
from penstock.cli.verbs.patterns.measure import sizes_of
from penstock.errors import unknown
from penstock.files import check_writable
from penstock.learn.detection import evaluation, model, samples, selection, training
from penstock.learn.detection import features as feature_table
from penstock.learn.detection.evaluation import Scores

SEVERAL_CLIENTS = "validated, several clients an I/O node"
"""A key of the model file and of --json, so it stays as it is."""


@click.command(short_help="Train a model on observations.")
@click.argument("file", metavar="[SEEN.csv]", required=False, type=click.Path(path_type=Path))
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
@options.seed
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
    observations = options.observations(file)
    requests = sizes_of(sizes) or samples.TRAINED_ON
    selected = options.with_sizes(observations, requests, "--sizes")
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
    model.save(training.signed(trained.model, provenance), out)
    if as_json:
        result = {name: options.figures(s) for name, s in scores.items()}
        emit_json({"out": str(out), "kind": kind, "features": names} | result)
    else:
        _show(out, kind, names, scores)


def _features(text: str | None, observations: Any) -> list[str]:
    if text is None:
        return selection.select(observations)
    names = list(feature_table.THESIS) if text == "thesis" else [n.strip() for n in text.split(",")]
    for name in names:
        if name not in feature_table.FEATURES:
            raise unknown("feature", name, [*feature_table.FEATURES, "thesis"])
    return list(dict.fromkeys(names))


def _show(out: Path, kind: str, names: list[str], scores: dict[str, Scores]) -> None:
    click.echo(f"{out}: a {kind} with the features {', '.join(names)}\n")
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
    click.echo(f"\nnext: penstock patterns evaluate --model {out}")
