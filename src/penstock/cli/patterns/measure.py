"""penstock patterns measure: observations of known patterns, taken."""

import hashlib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from penstock import units
from penstock.cli import deployed
from penstock.cli.output import as_json as json_option
from penstock.cli.output import emit_json, progress
from penstock.errors import InputError
from penstock.files import check_writable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.live.explorer import Cell
    from penstock.live.observing import Grid
    from penstock.studies.journal import Journal


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
@click.option("--emulate", metavar="SPEC", help="The file system; docs/patterns.md has ours.")
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
    from penstock.learn.detection import samples  # noqa: PLC0415 - 'show' needs none of it
    from penstock.live import explorer, observing  # noqa: PLC0415
    from penstock.studies.journal import Journal  # noqa: PLC0415

    check_writable(out)
    told = {
        "sizes": sizes_of(sizes),
        "processes": _counts(processes, "--processes", 4096),
        "io_nodes": _counts(io_nodes, "--io-nodes", 64),
        "interval": _time(interval, "--interval"),
        "seconds": _time(seconds, "--seconds"),
        "volume": deployed.volume(volume, "--volume") or None,
        "keep": keep,
    }
    grid = observing.grid(full=full, **{k: v for k, v in told.items() if v is not None})
    emulate = emulate or observing.EMULATED
    wanted = observing.cells(grid, seed)
    header: dict[str, str | int | float | None] = {
        "study": "patterns",
        "grid": hashlib.sha256(msgspec.json.encode(grid)).hexdigest()[:16],
        "emulated": emulate,
        "seed": seed,
    }

    with Journal(out.with_name(out.name + ".jsonl"), header) as journal:
        try:
            _take(grid, wanted, journal, root=root, emulate=emulate, seed=seed)
        except explorer.InterruptedRun as signalled:
            kept = len(wanted) - sum(_name(cell) not in journal.entries for cell in wanted)
            click.echo(
                f"penstock: interrupted; {kept} of {len(wanted)} runs are kept in {journal.path}, "
                "the same command goes on from there",
                err=True,
            )
            return 128 + signalled.number
        entries = [journal.entries[_name(cell)] for cell in sorted(wanted)]
        found = [samples.sample(row) for entry in entries for row in entry.rows]
    samples.write(out, found)
    result = {"out": str(out), "observations": len(found), "runs": len(wanted), "emulated": emulate}
    if as_json:
        emit_json(result)
    else:
        click.echo(f"{len(found)} observations of {len(wanted)} runs, on an emulated file system")
        click.echo(f"what to do with them: penstock patterns train {out} --out model.json")
    return 0


def _take(
    grid: "Grid",
    wanted: "Sequence[Cell]",
    journal: "Journal",
    *,
    root: Path | None,
    emulate: str,
    seed: int,
) -> None:
    """Run the cells that the journal does not have yet."""
    from penstock.live import explorer, observing  # noqa: PLC0415
    from penstock.studies.journal import Entry  # noqa: PLC0415

    missing = [cell for cell in wanted if _name(cell) not in journal.entries]
    with ExitStack() as stack:
        stack.enter_context(explorer.interruptible())
        shown = stack.enter_context(progress("measuring", len(wanted)))
        shown.advance(len(wanted) - len(missing))
        if not missing:
            return
        stack.enter_context(deployed.telling())
        folder = root or stack.enter_context(explorer.in_memory())
        state = stack.enter_context(explorer.private_state())
        survey = stack.enter_context(
            observing.Survey(grid, root=folder, state=state, emulate=emulate, seed=seed)
        )
        for cell in missing:
            rows: list[Any] = [one.row for one in survey.take(cell)]
            journal.add(Entry(cell=_name(cell), seconds=grid.seconds, rows=rows))
            shown.advance()


def _name(cell: "Cell") -> tuple[str, float, int]:
    return (cell.phase, float(cell.processes), cell.io_nodes)


def sizes_of(text: str | None) -> tuple[int, ...] | None:
    """Return request sizes as they are listed; None: nothing is said."""
    if text is None:
        return None
    found = [deployed.volume(part.strip(), "--sizes") for part in text.split(",")]
    if min(found) < 1:
        raise InputError(f"--sizes {text}: a request has a byte at least")
    return tuple(dict.fromkeys(found))


def _counts(text: str | None, flag: str, most: int) -> tuple[int, ...] | None:
    if text is None:
        return None
    found = tuple(dict.fromkeys(deployed.numbers(text, flag)))
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
