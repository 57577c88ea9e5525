"""penstock patterns measure: observations of known patterns, taken."""

from pathlib import Path

import click

from penstock import units
from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.errors import InputError
from penstock.files import check_writable


@click.command(short_help="Take observations of known patterns.")
@click.option(
    "--out",
    metavar="FILE.csv",
    required=True,
    type=click.Path(path_type=Path),
    help="Where observations go; FILE.csv.jsonl beside it is what an interruption leaves.",
)
@click.option("--sizes", metavar="SIZE,...", help="Of requests; else 32,256,64,128 KiB.")
@click.option("--processes", metavar="N,...", help="Ranks; else 4,8,16.")
@click.option("--io-nodes", metavar="N,...", help="Else 1,2,4.")
@click.option("--interval", metavar="TIME", help="Of observations; else 100 ms.")
@click.option("--seconds", metavar="TIME", help="That the ranks of a run play; else 1.5 s.")
@click.option("--volume", metavar="SIZE", help="Of a run's files together; else 320 MiB.")
@click.option("--keep", metavar="N", type=click.IntRange(1, 1000), help="A run; else 10.")
@click.option("--full", is_flag=True, help="128 to 512 ranks, 1 to 8 I/O nodes, 1 s: hours.")
@click.option(
    "--root",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where the ranks write and read; else a directory in memory.",
)
@click.option("--emulate", metavar="SPEC", help="The file system; docs/live/patterns.md has ours.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the order of runs.")
@json_option
def measure(
    *,
    out: Path,
    sizes: str | None,
    processes: str | None,
    io_nodes: str | None,
    interval: str | None,
    seconds: str | None,
    volume: str | None,
    keep: int | None,
    full: bool,
    root: Path | None,
    emulate: str | None,
    seed: int,
    as_json: bool,
) -> int:
    """Play every pattern through real I/O nodes, and keep what they saw amid each run.

    \b
    Examples:
      penstock patterns measure --out seen.csv                         about ten minutes
      penstock patterns measure --out few.csv --sizes 64KiB --processes 4 --io-nodes 1
      penstock patterns train seen.csv --out model.json                what to do with it

    The grid is pattern x operation x request size x ranks x I/O nodes, in random order, on an
    emulated file system. Of each run the same number of observations is kept; those of its begin
    and end are not. The I/O nodes are the command's own and end with it. After an interruption the
    same command goes on where it stopped.
    """
    from penstock.cli.common.survey import Survey  # noqa: PLC0415 - 'show' needs none of it
    from penstock.learn.detection import samples  # noqa: PLC0415
    from penstock.live.measure import pattern_survey  # noqa: PLC0415

    check_writable(out)
    told = {
        "sizes": sizes_of(sizes),
        "processes": _counts(processes, "--processes", 4096),
        "io_nodes": _counts(io_nodes, "--io-nodes", 64),
        "interval": _time(interval, "--interval"),
        "seconds": _time(seconds, "--seconds"),
        "volume": live_options.volume(volume, "--volume") or None,
        "keep": keep,
    }
    grid = pattern_survey.grid(full=full, **{k: v for k, v in told.items() if v is not None})
    emulate = emulate or pattern_survey.EMULATED
    wanted = pattern_survey.cells(grid, seed)
    survey = Survey(
        study="patterns",
        grid=grid,
        emulate=emulate,
        seed=seed,
        seconds=grid.seconds,
        wanted=wanted,
        name=lambda cell: (cell.phase, float(cell.processes), cell.io_nodes),
        begin=lambda root, state: pattern_survey.Survey(
            grid, root=root, state=state, emulate=emulate, seed=seed
        ),
        take=lambda begun, cell: [one.row for one in begun.take(cell)],
    )
    found = [samples.sample(row) for row in survey.run(out, root)]
    samples.write(out, found)
    result = {"out": str(out), "observations": len(found), "runs": len(wanted), "emulated": emulate}
    if as_json:
        emit_json(result)
    else:
        click.echo(f"{len(found)} observations of {len(wanted)} runs, on an emulated file system")
        click.echo(f"what to do with them: penstock patterns train {out} --out model.json")
    return 0


def sizes_of(text: str | None) -> tuple[int, ...] | None:
    """Return request sizes as they are listed; None: nothing is said."""
    if text is None:
        return None
    found = [live_options.volume(part.strip(), "--sizes") for part in text.split(",")]
    if min(found) < 1:
        raise InputError(f"--sizes {text}: a request has a byte at least")
    return tuple(dict.fromkeys(found))


def _counts(text: str | None, flag: str, most: int) -> tuple[int, ...] | None:
    if text is None:
        return None
    found = tuple(dict.fromkeys(live_options.numbers(text, flag)))
    for number in found:
        if not 1 <= number <= most:
            raise InputError(f"{flag} {number}: give 1 to {most}")
    return found


def _time(text: str | None, flag: str) -> float | None:
    if text is None:
        return None
    try:
        return units.seconds(text)
    except InputError as error:
        raise InputError(f"{flag}: {error}") from error
