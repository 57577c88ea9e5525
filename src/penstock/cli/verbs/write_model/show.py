"""penstock write-model show: what a model looks at, and what it says costs time."""

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock import units
from penstock.cli.common.output import emit_json, emit_table, json_option

if TYPE_CHECKING:
    from penstock.learn.write_models.model import TrainedModel


@click.command(short_help="What a model says costs time.")
@click.argument("model_file", metavar="MODEL.json", type=click.Path(path_type=Path))
@json_option
def show(*, model_file: Path, as_json: bool) -> None:
    """Show a model: what it was made of, what it has seen, and what it says costs time.

    \b
    Examples:
      penstock write-model show model.json
      penstock write-model show model.json --json

    A linear model (lasso and its kin) is its features, each with the stage that it stands for and
    the seconds for each unit of it. An extrapolating model is what every stage gets done a second.
    Trees are told by how often they look at a feature.
    """
    from penstock.learn.write_models import model  # noqa: PLC0415 - --help stays quick

    learned = model.load(model_file)
    looks = _looks(learned)
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
                "looks_at": looks,
            }
        )
        return
    click.echo(f"{one.technique}, of {one.machine.name}")
    click.echo(f"sources    {', '.join(one.sources)}")
    if learned.origin:
        click.echo(f"note       {learned.origin}")
    for name, (low, high) in one.range.axes.items():
        click.echo(f"seen       {name}: {low:,g} to {high:,g}")
    if one.tags != [""]:
        click.echo(f"tags       {', '.join(one.tags)}")
    click.echo(
        f"sure       {one.interval.coverage:.0%} within a factor of "
        f"{math.exp(one.interval.half):.2f}, wider outside of what it has seen"
    )
    for name, value in one.provenance.items():
        click.echo(f"{name}: {value}")
    click.echo()
    columns = tuple(looks[0]) if looks else ()
    emit_table(
        columns,
        [tuple(_plain(value) for value in row.values()) for row in looks],
        text={"stage", "meaning"},
    )


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _looks(learned: "TrainedModel") -> list[dict[str, Any]]:
    """Return what a model looks at, a row each."""
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
        return _paces(learned, model.extrapolating.term.level)
    splits = Counter(at for tree in model.trees for at in tree.feature if at >= 0)
    names = [*model.features, *(f"tag {tag}" for tag in model.tags[1:])]
    return [{"feature": names[at], "splits": count} for at, count in splits.most_common()]


def _intercept(value: float) -> dict[str, Any]:
    return {"feature": "1", "stage": "", "meaning": "whatever is written", "seconds a unit": value}


def _paces(learned: "TrainedModel", levels: list[float]) -> list[dict[str, Any]]:
    """Return what every stage gets done a second, as the model has it."""
    from penstock.learn.write_models.machine import OPERATIONS  # noqa: PLC0415

    rows: list[dict[str, Any]] = []
    for stage, level in zip(learned.machine.stage, levels, strict=False):
        pace = math.exp(min(-level, 700.0))
        counted = stage.kind in OPERATIONS
        load = "operations" if counted else "bytes of the busiest"
        told = f"{pace:,.4g}/s" if counted else units.show_bandwidth(pace)
        rows.append({"stage": stage.name, "load": load, "pace": told})
    latency = units.show_seconds(math.exp(min(levels[-1], 700.0)))
    return [*rows, {"stage": "latency", "load": "none", "pace": latency}]
