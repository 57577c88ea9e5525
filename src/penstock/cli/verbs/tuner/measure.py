"""penstock tuner measure: measure the bandwidth of every TWINS window."""

from pathlib import Path
from typing import Any

import click
import msgspec

from penstock import units
from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.verbs.patterns.measure import sizes_of
from penstock.errors import InputError
from penstock.files import check_writable


@click.command(short_help="Measure the bandwidth of every TWINS window.")
@click.option(
    "--out",
    metavar="FILE.csv",
    required=True,
    type=click.Path(path_type=Path),
    help="File for the rewards; FILE.csv.jsonl keeps the results of an interrupted run.",
)
@click.option("--processes", metavar="N,...", help="Numbers of ranks. Default: 8,16.")
@click.option("--io-nodes", metavar="N,...", help="Numbers of I/O nodes. Default: 1,2,4.")
@click.option("--sizes", metavar="SIZE,...", help="Request sizes. Default: 32KiB,256KiB.")
@click.option(
    "--windows", metavar="TIME,...", help="Default: 125 us to 8 ms, and schedulers without one."
)
@click.option("--seconds", metavar="TIME", help="Duration of a run. Default: 2.7 s.")
@click.option(
    "--keep", metavar="N", type=click.IntRange(1, 1000), help="Intervals per run. Default: 20."
)
@click.option(
    "--full", is_flag=True, help="The grid of the thesis (128 to 512 ranks): takes hours."
)
@click.option("--emulate", metavar="SPEC", help="The emulated file system. Default: 'disks'.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the order of runs.")
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
    """Replay every access pattern with every window, and keep the reward of each interval.

    \b
    Examples:
      penstock tuner measure --out windows.csv                         about half an hour
      penstock tuner measure --out few.csv --processes 16 --io-nodes 4    six minutes
      penstock tuner measure --out two.csv --processes 4 --io-nodes 1 --sizes 64KiB \\
        --windows '500 us,4 ms' --seconds 0.9 --keep 3                    a quick look

    The grid is pattern x operation x request size x ranks x I/O nodes x window, on an emulated file
    system. The command starts I/O nodes of its own, and ends them. After an interruption the same
    command continues where it stopped.
    """
    from penstock.campaign.journal import Journal  # noqa: PLC0415 - 'show' does not need it
    from penstock.cli.common import survey  # noqa: PLC0415
    from penstock.data import windows as rewards  # noqa: PLC0415
    from penstock.live.measure import window_survey  # noqa: PLC0415

    check_writable(out)
    options: dict[str, Any] = {
        "processes": live_options.numbers(processes, "--processes") if processes else None,
        "io_nodes": live_options.numbers(io_nodes, "--io-nodes") if io_nodes else None,
        "sizes": sizes_of(sizes),
        "seconds": times_of(seconds, "--seconds", 3600.0)[0] if seconds else None,
        "keep": keep,
    }
    grid = msgspec.structs.replace(
        window_survey.FULL if full else window_survey.GRID,
        **{
            name: tuple(dict.fromkeys(value)) if isinstance(value, list | tuple) else value
            for name, value in options.items()
            if value
        },
    )
    window_survey.check(grid)
    emulate = emulate or window_survey.EMULATED_STORAGE
    trials = window_survey.survey(
        grid,
        windows=times_of(windows, "--windows", 1.0) if windows else window_survey.WINDOWS,
        emulate=emulate,
        seed=seed,
    )
    with Journal(out.with_name(out.name + ".jsonl"), trials.header) as journal:
        survey.run(trials, journal, "measuring")
        rows = [rewards.reward_series(row) for row in trials.rows(journal)]
    rewards.write(out, rows)
    result = {"out": str(out), "runs": len(rows), "emulated": emulate}
    if as_json:
        emit_json(result)
    else:
        click.echo(f"{len(rows)} runs, each with one window, on an emulated file system: {out}")
    return 0


def times_of(text: str, flag: str, maximum: float) -> tuple[float, ...]:
    """Parse a list of times, without duplicates."""
    try:
        times = tuple(dict.fromkeys(units.seconds(part.strip()) for part in text.split(",")))
    except InputError as error:
        raise InputError(f"{flag}: {error}") from error
    for time in times:
        if not 1e-6 <= time <= maximum:
            raise InputError(f"{flag} {text}: give 1 us to {maximum:g} s")
    return times
