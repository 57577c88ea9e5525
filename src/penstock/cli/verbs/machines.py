"""penstock machines: the machines whose writes can be predicted."""

import click
import msgspec

from penstock import units
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.terminal import echo
from penstock.learn.write_models import machine
from penstock.learn.write_models.parameters import bandwidth


@click.command()
@click.argument("name", required=False)
@json_option
def machines(*, name: str | None, as_json: bool) -> None:
    """List the machines whose writes can be predicted, or explain one: its stages and source.

    \b
    Examples:
      penstock machines
      penstock machines titan
      penstock machines ./ours.toml --json       check a description of your own

    docs/formats/machines.md says how to describe a machine.
    """
    if name is None:
        listed = [machine.load(one) for one in machine.names()]
        if as_json:
            emit_json(
                [
                    {"name": m.name, "title": m.title, "bandwidths": any(map(bandwidth, m.stage))}
                    for m in listed
                ]
            )
        else:
            rows = [
                (
                    m.name,
                    f"{m.nodes:,}",
                    f"{m.striping.targets:,}",
                    "known" if any(map(bandwidth, m.stage)) else "unknown: needs --model",
                    m.title,
                )
                for m in listed
            ]
            columns = ("machine", "nodes", "targets", "bandwidths", "title")
            emit_table(columns, rows, text={"bandwidths", "title"})
        return
    described = machine.load(name)
    if as_json:
        emit_json(msgspec.to_builtins(described))
        return
    striping = described.striping
    echo(f"{described.title or described.name}\n{described.source}\n")
    stages = [
        (stage.name, stage.kind, f"{stage.nodes_each or '-'}", _rate(stage.bandwidth, stage.rate))
        for stage in described.stage
    ]
    emit_table(("stage", "kind", "nodes each", "rate of each"), stages, text={"kind"})
    control = "users can choose" if striping.selectable else "fixed"
    echo(
        f"\n{described.nodes:,} nodes of {described.cores} cores; {striping.targets:,} targets on "
        f"{striping.servers:,} servers; stripes of {units.show_volume(described.block)} over "
        f"{striping.count or 'all'} targets per file ({control})"
    )


def _rate(bandwidth: str | float | None, rate: float | None) -> str:
    if bandwidth is not None:
        return units.show_bandwidth(units.bandwidth(bandwidth))
    return "unknown" if rate is None else f"{rate:,g} operations/s"
