"""penstock write-model show: the features of a model, and what costs time."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import click

from penstock import units
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.learn.write_models.machine import OPERATIONS
from penstock.learn.write_models.model import TrainedModel, load


@click.command(short_help="Show a model and what costs time.")
@click.argument("model_file", metavar="MODEL.json", type=click.Path(path_type=Path))
@json_option
def show(*, model_file: Path, as_json: bool) -> None:
    """Show a model: its training data, their range, and what costs time.

    \b
    Examples:
      penstock write-model show model.json
      penstock write-model show model.json --json

    A linear model (such as lasso) is shown by its features, each with its stage and the seconds per
    unit. An extrapolating model is shown by the rate of every stage, trees by how often they split
    on a feature.
    """
    learned = load(model_file)
    features = _features(learned)
    one = learned.model
    if as_json:
        emit_json(
            {
                "machine": one.machine.name,
                "technique": one.technique,
                "tags": one.tags,
                "sources": one.sources,
                "simulated": bool(learned.origin),
                "seen": one.range.axes,
                "coverage": one.interval.coverage,
                "factor": math.exp(one.interval.half),
                "made": one.provenance,
                "looks_at": features,
            }
        )
        return
    click.echo(f"{one.technique}, for {one.machine.name}")
    click.echo(f"sources    {', '.join(one.sources)}")
    if learned.origin:
        click.echo(f"note       {learned.origin}")
    for name, (low, high) in one.range.axes.items():
        click.echo(f"range      {name}: {low:,g} to {high:,g}")
    if one.tags != [""]:
        click.echo(f"tags       {', '.join(one.tags)}")
    click.echo(
        f"interval   {one.interval.coverage:.0%} within a factor of "
        f"{math.exp(one.interval.half):.2f}, wider outside of the training data"
    )
    for name, value in one.provenance.items():
        click.echo(f"{name}: {value}")
    click.echo()
    columns = tuple(features[0]) if features else ()
    emit_table(
        columns,
        [tuple(_plain(value) for value in row.values()) for row in features],
        text={"stage", "meaning"},
    )


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _features(learned: TrainedModel) -> list[dict[str, Any]]:
    """Return the features of a model, one row each."""
    model = learned.model
    if model.linear is not None:
        rows: list[dict[str, Any]] = [
            {
                "feature": one.name,
                "stage": one.stage,
                "meaning": one.meaning,
                "seconds a unit": one.coefficient,
            }
            for one in learned.selected_features
        ]
        return [*rows, _intercept(model.linear.intercept)]
    if model.extrapolating is not None:
        return _rates(learned, model.extrapolating.term.level)
    splits = Counter(at for tree in model.trees for at in tree.feature if at >= 0)
    names = [*model.features, *(f"tag {tag}" for tag in model.tags[1:])]
    return [{"feature": names[at], "splits": count} for at, count in splits.most_common()]


def _intercept(value: float) -> dict[str, Any]:
    return {"feature": "1", "stage": "", "meaning": "constant", "seconds a unit": value}


def _rates(learned: TrainedModel, levels: list[float]) -> list[dict[str, Any]]:
    """Return the rate of every stage."""
    rows: list[dict[str, Any]] = []
    for stage, level in zip(learned.machine.stage, levels, strict=False):
        rate = math.exp(min(-level, 700.0))
        counted = stage.kind in OPERATIONS
        load = "operations" if counted else "bytes of the busiest"
        text = f"{rate:,.4g}/s" if counted else units.show_bandwidth(rate)
        rows.append({"stage": stage.name, "load": load, "pace": text})
    latency = units.show_seconds(math.exp(min(levels[-1], 700.0)))
    return [*rows, {"stage": "latency", "load": "none", "pace": latency}]
