"""penstock patterns show: the features of a model, and its training data."""

from collections.abc import Iterator
from pathlib import Path

import click

from penstock.cli.common.output import emit_json, json_option
from penstock.cli.verbs.patterns import options
from penstock.learn.detection.model import Model
from penstock.learn.trees import Tree


@click.command(short_help="Show a model's features and training data.")
@options.model
@json_option
def show(*, model_file: Path | None, as_json: bool) -> None:
    """Show a model: its kind, its features, how it decides, and its training data.

    \b
    Examples:
      penstock patterns show
      penstock patterns show --model model.json --json

    A tree is shown completely: the conditions of each pattern, and their confidence.
    """
    model = options.load(model_file)
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
    click.echo(f"a {model.kind} of version {model.version}")
    click.echo(f"features   {', '.join(model.features)}")
    click.echo(f"patterns   {', '.join(model.classes)}")
    click.echo(
        f"unknown    below {model.least_requests} requests, or a confidence of "
        f"{model.least_confidence:g}"
    )
    for name, value in model.provenance.items():
        click.echo(f"{name}: {_plain(value)}")
    if model.kind == "tree":
        click.echo("\n" + "\n".join(_rules(model, model.trees[0])))


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
