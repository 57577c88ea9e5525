"""penstock patterns measure: take observations of known access patterns."""

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
    help="File for the observations; FILE.csv.jsonl keeps the results of an interrupted run.",
)
@click.option("--sizes", metavar="SIZE,...", help="Request sizes. Default: 32,256,64,128 KiB.")
@click.option("--processes", metavar="N,...", help="Numbers of ranks. Default: 4,8,16.")
@click.option("--io-nodes", metavar="N,...", help="Numbers of I/O nodes. Default: 1,2,4.")
@click.option("--interval", metavar="TIME", help="Interval of observations. Default: 100 ms.")
@click.option("--seconds", metavar="TIME", help="Duration of a run. Default: 1.5 s.")
@click.option("--volume", metavar="SIZE", help="Total size of a run's files. Default: 320 MiB.")
@click.option(
    "--keep", metavar="N", type=click.IntRange(1, 1000), help="Observations per run. Default: 10."
)
@click.option(
    "--full", is_flag=True, help="The grid of the thesis (128 to 512 ranks): takes hours."
)
@click.option(
    "--root",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Directory of the ranks' files. Default: one in memory.",
)
@click.option(
    "--emulate",
    metavar="SPEC",
    help="The emulated file system; default: see docs/live/patterns.md.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the order of runs.")
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
    """Replay every pattern through real I/O nodes, and keep observations of each run.

    \b
    Examples:
      penstock patterns measure --out seen.csv                         about ten minutes
      penstock patterns measure --out few.csv --sizes 64KiB --processes 4 --io-nodes 1
      penstock patterns train seen.csv --out model.json                use the result

    The grid is pattern x operation x request size x ranks x I/O nodes, in random order, on an
    emulated file system. The same number of observations is kept of each run, none of its begin and
    end. The command starts I/O nodes of its own, and ends them. After an interruption the same
    command continues where it stopped.
    """
    from penstock.campaign.journal import Journal  # noqa: PLC0415 - 'show' does not need it
    from penstock.cli.common import survey  # noqa: PLC0415
    from penstock.learn.detection import samples  # noqa: PLC0415
    from penstock.live.measure import pattern_survey  # noqa: PLC0415

    check_writable(out)
    options = {
        "sizes": sizes_of(sizes),
        "processes": _counts(processes, "--processes", 4096),
        "io_nodes": _counts(io_nodes, "--io-nodes", 64),
        "interval": _time(interval, "--interval"),
        "seconds": _time(seconds, "--seconds"),
        "volume": live_options.volume(volume, "--volume") or None,
        "keep": keep,
    }
    grid = pattern_survey.grid(full=full, **{k: v for k, v in options.items() if v is not None})
    emulate = emulate or pattern_survey.EMULATED_STORAGE
    patterns = pattern_survey.survey(grid, root=root, emulate=emulate, seed=seed)
    with Journal(out.with_name(out.name + ".jsonl"), patterns.header) as journal:
        survey.run(patterns, journal, "measuring")
        rows = [samples.sample(row) for row in patterns.rows(journal)]
    samples.write(out, rows)
    runs = len(patterns.cells)
    result = {"out": str(out), "observations": len(rows), "runs": runs, "emulated": emulate}
    if as_json:
        emit_json(result)
    else:
        click.echo(f"{len(rows)} observations of {runs} runs, on an emulated file system")
        click.echo(f"next: penstock patterns train {out} --out model.json")
    return 0


def sizes_of(text: str | None) -> tuple[int, ...] | None:
    """Parse a list of request sizes; None stays None."""
    if text is None:
        return None
    numbers = [live_options.volume(part.strip(), "--sizes") for part in text.split(",")]
    if min(numbers) < 1:
        raise InputError(f"--sizes {text}: a request has at least one byte")
    return tuple(dict.fromkeys(numbers))


def _counts(text: str | None, flag: str, maximum: int) -> tuple[int, ...] | None:
    if text is None:
        return None
    numbers = tuple(dict.fromkeys(live_options.numbers(text, flag)))
    for number in numbers:
        if not 1 <= number <= maximum:
            raise InputError(f"{flag} {number}: give 1 to {maximum}")
    return numbers


def _time(text: str | None, flag: str) -> float | None:
    if text is None:
        return None
    try:
        return units.seconds(text)
    except InputError as error:
        raise InputError(f"{flag}: {error}") from error
