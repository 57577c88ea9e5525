"""penstock machines: the write paths that predictions know."""

import click

from penstock import units
from penstock.cli.common.output import emit_json, emit_table, json_option


@click.command(short_help="List the machines, or explain one.")
@click.argument("name", required=False)
@json_option
def machines(*, name: str | None, as_json: bool) -> None:
    """List the machines that predictions know, or explain one: its stages, and where it is from.

    \b
    Examples:
      penstock machines
      penstock machines titan
      penstock machines ./ours.toml --json       a description of your own, checked

    docs/formats/machines.md tells how to describe another.
    """
    import msgspec  # noqa: PLC0415 - --help stays quick

    from penstock.learn.write_models import machine  # noqa: PLC0415
    from penstock.learn.write_models.parameters import bandwidth  # noqa: PLC0415

    if name is None:
        known = [machine.load(one) for one in machine.names()]
        if as_json:
            emit_json(
                [
                    {"name": m.name, "title": m.title, "bandwidths": any(map(bandwidth, m.stage))}
                    for m in known
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
                for m in known
            ]
            columns = ("machine", "nodes", "targets", "bandwidths", "title")
            emit_table(columns, rows, text={"bandwidths", "title"})
        return
    chosen = machine.load(name)
    if as_json:
        emit_json(msgspec.to_builtins(chosen))
        return
    striping = chosen.striping
    click.echo(f"{chosen.title or chosen.name}\n{chosen.source}\n")
    stages = [
        (stage.name, stage.kind, f"{stage.nodes_each or '-'}", _pace(stage.bandwidth, stage.rate))
        for stage in chosen.stage
    ]
    emit_table(("stage", "kind", "nodes each", "pace of one"), stages, text={"kind"})
    whose = "users choose" if striping.selectable else "nobody chooses"
    click.echo(
        f"\n{chosen.nodes:,} nodes of {chosen.cores} cores; {striping.targets:,} targets on "
        f"{striping.servers:,} servers; {units.show_volume(chosen.block)} a stripe, "
        f"{striping.count or 'all'} targets a file; {whose}"
    )


def _pace(bandwidth: str | float | None, rate: float | None) -> str:
    if bandwidth is not None:
        return units.show_bandwidth(units.bandwidth(bandwidth))
    return "unknown" if rate is None else f"{rate:,g} operations/s"
