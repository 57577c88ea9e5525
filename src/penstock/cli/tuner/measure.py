"""penstock tuner measure: what windows of TWINS are worth."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from penstock.cli import deployed
from penstock.cli.output import as_json as json_option
from penstock.cli.output import emit_json
from penstock.errors import InputError
from penstock.files import check_writable

if TYPE_CHECKING:
    from penstock.live.worths import Try


@click.command(short_help="Measure what windows of TWINS are worth.")
@click.option(
    "--out",
    metavar="FILE.csv",
    required=True,
    type=click.Path(path_type=Path),
    help="Where rewards go; FILE.csv.jsonl beside it is what an interruption leaves.",
)
@click.option("--processes", metavar="N,...", help="Ranks; else 8,16.")
@click.option("--io-nodes", metavar="N,...", help="Else 1,2,4.")
@click.option("--full", is_flag=True, help="128 to 512 ranks, 1 to 8 I/O nodes, 1 s: hours.")
@click.option("--emulate", metavar="SPEC", help="The file system; else 'disks'.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the order of runs.")
@json_option
def measure(
    *,
    out: Path,
    processes: str | None,
    io_nodes: str | None,
    full: bool,
    emulate: str | None,
    seed: int,
    as_json: bool,
) -> int:
    """Play every access pattern with every window, and keep what each interval was worth.

    \b
    Examples:
      penstock tuner measure --out windows.csv                         about half an hour
      penstock tuner measure --out few.csv --processes 16 --io-nodes 4    six minutes

    The grid is pattern x operation x request size x ranks x I/O nodes x window, on an emulated file
    system. The I/O nodes are the command's own and end with it. After an interruption the same
    command goes on where it stopped.
    """
    from penstock.cli.survey import Survey  # noqa: PLC0415 - 'show' needs none of it
    from penstock.data import windows  # noqa: PLC0415
    from penstock.live import worths  # noqa: PLC0415

    check_writable(out)
    counts = {
        "processes": deployed.numbers(processes, "--processes") if processes else None,
        "io_nodes": deployed.numbers(io_nodes, "--io-nodes") if io_nodes else None,
    }
    told = {name: tuple(dict.fromkeys(given)) for name, given in counts.items() if given}
    grid = msgspec.structs.replace(worths.FULL if full else worths.GRID, **told)
    if min(*grid.processes, *grid.io_nodes) < 1:
        raise InputError("--processes and --io-nodes: give 1 or more of each")
    emulate = emulate or worths.EMULATED
    wanted = worths.tries(grid, seed)
    survey = Survey(
        study="windows",
        grid=grid,
        emulate=emulate,
        seed=seed,
        seconds=grid.seconds,
        wanted=wanted,
        name=_name,
        begin=lambda root, state: worths.Survey(
            grid, root=root, state=state, emulate=emulate, seed=seed
        ),
        take=lambda begun, one: [begun.take(one).row],
    )
    found = [windows.worth(row) for row in survey.run(out)]
    windows.write(out, found)
    result = {"out": str(out), "runs": len(found), "emulated": emulate}
    if as_json:
        emit_json(result)
    else:
        click.echo(f"{len(found)} runs, each with one window, on an emulated file system: {out}")
    return 0


def _name(one: "Try") -> tuple[str, float, int]:
    setting = f"{one.setting.scheduler}-{round(one.setting.window * 1e6)}"
    return (f"{one.cell.phase} {setting}", float(one.cell.processes), one.cell.io_nodes)
