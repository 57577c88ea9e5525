"""penstock tuner measure: what windows of TWINS are worth."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from penstock import units
from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.verbs.patterns.measure import sizes_of
from penstock.errors import InputError
from penstock.files import check_writable

if TYPE_CHECKING:
    from penstock.live.measure.window_survey import Try


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
@click.option("--sizes", metavar="SIZE,...", help="Of requests; else 32KiB,256KiB.")
@click.option("--windows", metavar="TIME,...", help="Else 125 us to 8 ms, and two without any.")
@click.option("--seconds", metavar="TIME", help="That the ranks of a run play; else 2.7 s.")
@click.option("--keep", metavar="N", type=click.IntRange(1, 1000), help="A run; else 20.")
@click.option("--full", is_flag=True, help="128 to 512 ranks, 1 to 8 I/O nodes, 1 s: hours.")
@click.option("--emulate", metavar="SPEC", help="The file system; else 'disks'.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the order of runs.")
@json_option
def measure(
    *,
    out: Path,
    processes: str | None,
    io_nodes: str | None,
    sizes: str | None,
    windows: str | None,
    seconds: str | None,
    keep: int | None,
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
      penstock tuner measure --out two.csv --processes 4 --io-nodes 1 --sizes 64KiB \\
        --windows '500 us,4 ms' --seconds 0.9 --keep 3                    a look

    The grid is pattern x operation x request size x ranks x I/O nodes x window, on an emulated file
    system. The I/O nodes are the command's own and end with it. After an interruption the same
    command goes on where it stopped.
    """
    from penstock.cli.common.survey import Survey  # noqa: PLC0415 - 'show' needs none of it
    from penstock.data import windows as rewards  # noqa: PLC0415
    from penstock.live.measure import window_survey  # noqa: PLC0415

    check_writable(out)
    told: dict[str, Any] = {
        "processes": live_options.numbers(processes, "--processes") if processes else None,
        "io_nodes": live_options.numbers(io_nodes, "--io-nodes") if io_nodes else None,
        "sizes": sizes_of(sizes),
        "seconds": times_of(seconds, "--seconds", 3600.0)[0] if seconds else None,
        "keep": keep,
    }
    grid = msgspec.structs.replace(
        window_survey.FULL if full else window_survey.GRID,
        **{
            name: tuple(dict.fromkeys(given)) if isinstance(given, list | tuple) else given
            for name, given in told.items()
            if given
        },
    )
    if min(*grid.processes, *grid.io_nodes) < 1:
        raise InputError("--processes and --io-nodes: give 1 or more of each")
    if grid.seconds < (grid.keep + window_survey.BEGIN + window_survey.END) * grid.interval:
        raise InputError(
            f"--seconds {grid.seconds:g} are too short for {grid.keep} intervals of "
            f"{grid.interval:g} s; play for longer, or --keep fewer"
        )
    emulate = emulate or window_survey.EMULATED
    chosen = times_of(windows, "--windows", 1.0) if windows else window_survey.WINDOWS
    wanted = window_survey.tries(grid, seed, chosen)
    survey = Survey(
        study="windows",
        grid=grid,
        emulate=emulate,
        seed=seed,
        seconds=grid.seconds,
        wanted=wanted,
        name=_name,
        begin=lambda root, state: window_survey.Survey(
            grid, root=root, state=state, emulate=emulate, seed=seed
        ),
        take=lambda begun, one: [begun.take(one).row],
    )
    found = [rewards.worth(row) for row in survey.run(out)]
    rewards.write(out, found)
    result = {"out": str(out), "runs": len(found), "emulated": emulate}
    if as_json:
        emit_json(result)
    else:
        click.echo(f"{len(found)} runs, each with one window, on an emulated file system: {out}")
    return 0


def times_of(text: str, flag: str, most: float) -> tuple[float, ...]:
    """Return times as they are listed, each once."""
    try:
        found = tuple(dict.fromkeys(units.seconds(part.strip()) for part in text.split(",")))
    except InputError as error:
        raise InputError(f"{flag}: {error}") from error
    for time in found:
        if not 1e-6 <= time <= most:
            raise InputError(f"{flag} {text}: give 1 us to {most:g} s")
    return found


def _name(one: "Try") -> tuple[str, float, int]:
    setting = f"{one.setting.scheduler}-{round(one.setting.window * 1e6)}"
    return (f"{one.cell.phase} {setting}", float(one.cell.processes), one.cell.io_nodes)
