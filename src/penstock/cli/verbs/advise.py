"""penstock advise: how a write should be made, what that gains, and what to type."""

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock import units
from penstock.cli.common import write_options
from penstock.cli.common.options import typed
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.write_options import WriteOptions
from penstock.errors import InputError, error_prefix
from penstock.files import check_writable, reason, replacing

if TYPE_CHECKING:
    from penstock.learn.write_models.advice import Advice, Settings
    from penstock.learn.write_models.checkpoint import Interval
    from penstock.model.write import Write

HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
WHY = {
    "budget": "the budget",
    "budget_slow": "the budget, if a write is as slow as it may be",
    "mtbf": "least waste by failures",
}


@click.command()
@typed(WriteOptions)
@click.option(
    "--measured", metavar="TIME", help="What the write takes as it is now ('48 s'), if you know."
)
@click.option(
    "--aggregators/--no-aggregators",
    default=True,
    show_default=True,
    help="Whether some processes may write for others; else stripes alone are chosen.",
)
@click.option(
    "--gather",
    metavar="BANDWIDTH",
    help="Into a node that writes for others ('5 GB/s'); else that of the machine's compute nodes.",
)
@click.option(
    "--hosts",
    "hosts_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Names of the job's nodes, in their order ('scontrol show hostnames'): for one file, "
    "aggregators may then be any of them, else they are the first ones.",
)
@click.option(
    "--path",
    default="OUTPUT",
    show_default=True,
    help="What the program writes to: the file, or the directory of a file each.",
)
@click.option(
    "--hints",
    "hints_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the hints there, for ROMIO_HINTS.",
)
@click.option(
    "--interval-budget",
    metavar="PART",
    help="Of the run that checkpoints may take ('10%'): how often to write one.",
)
@click.option(
    "--mtbf", metavar="TIME", help="Mean time between failures ('2 d'): how often is best."
)
@click.option(
    "--compute-time", metavar="TIME", help="Of the run, without writes: how many checkpoints."
)
@json_option
def advise(
    *,
    options: WriteOptions,
    measured: str | None,
    aggregators: bool,
    gather: str | None,
    hosts_file: Path | None,
    path: str,
    hints_file: Path | None,
    interval_budget: str | None,
    mtbf: str | None,
    compute_time: str | None,
    as_json: bool,
) -> None:
    """Say how a write should be made: who writes, over how many targets, and how often.

    \b
    Examples:
      penstock advise --machine titan --nodes 256 --cores 16 --burst "100 MB" --shared
      penstock advise --machine titan --log run.darshan --interval-budget 10% --compute-time "6 h"
      penstock advise --model mine.json --nodes 64 --cores 16 --burst "1 GB" --measured "48 s"

    Candidates are numbers of aggregators (processes that write for others) where MPI-IO or ADIOS2
    would put them, and stripes where users may choose; docs/writes/predict.md lists them.
    Bringing data to aggregators is counted where a bandwidth for it is known. The gain is a
    model's word: its interval says how sure it is, and what you measure afterwards counts.
    """
    from penstock.learn.write_models import advice  # noqa: PLC0415 - --help stays quick

    if hints_file is not None:
        check_writable(hints_file, not_one_of=(*options.read, hosts_file))
    model = options.model()
    write, notes = options.write(model.machine)
    hosts = _hosts(hosts_file, write)
    found = advice.advise(
        model,
        write,
        measured=_seconds("--measured", measured),
        gather=_bandwidth("--gather", gather),
        aggregators=aggregators,
        hosts=hosts,
    )
    typed = advice.settings(model.machine, found, path, hints_file=hints_file, hosts=hosts)
    intervals = _intervals(found, interval_budget, mtbf, compute_time)
    if hints_file is not None and typed.hints:
        with replacing(hints_file) as partial:
            partial.write_text(typed.hints_file(), encoding="utf-8")
    elif hints_file is not None:
        notes.append(f"there are no hints to give: {hints_file} was not written")
    if as_json:
        emit_json(
            {"machine": model.machine.name, "notes": notes} | _result(found, typed, intervals)
        )
        return
    click.echo(f"{model.machine.name}: {write_options.words(write)}")
    _show(found, typed, intervals, notes)


def _hosts(path: Path | None, write: "Write") -> tuple[str, ...]:
    if path is None:
        return ()
    with error_prefix("--hosts"):
        try:
            names = tuple(path.read_text(encoding="utf-8").split())
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {reason(error)}") from error
        if not write.shared:
            raise InputError("hosts can be chosen for one file for all; of a file each leave it")
        if wrong := next((name for name in names if not HOST.fullmatch(name)), None):
            raise InputError(f"{path}: {wrong[:40]!r} is no host's name; give one a line")
        if len(set(names)) != len(names) or len(names) != write.nodes:
            raise InputError(
                f"{path} has {len(set(names))} hosts; give each of the {write.nodes} once"
            )
        return names


def _seconds(flag: str, text: str | None) -> float | None:
    with error_prefix(flag):
        return None if text is None else units.seconds(text)


def _bandwidth(flag: str, text: str | None) -> float | None:
    with error_prefix(flag):
        return None if text is None else units.bandwidth(text)


def _part(flag: str, text: str) -> float:
    number = text.strip().removesuffix("%")
    try:
        return float(number) / (100 if number != text.strip() else 1)
    except ValueError as error:
        raise InputError(f"{flag}: {text!r} is not a part of the run; give '10%'") from error


def _intervals(
    found: "Advice", budget: str | None, mtbf: str | None, compute: str | None
) -> "dict[str, Interval]":
    """Return how often to write, as advised; the budget holds at the interval's far end too."""
    from penstock.learn.write_models import checkpoint  # noqa: PLC0415

    seconds = _seconds("--compute-time", compute)
    if seconds is not None and budget is None and mtbf is None:
        raise InputError("--compute-time needs --interval-budget or --mtbf, to say how often")
    expected, _, slowest = found.outcome()
    intervals: dict[str, Interval] = {}
    if budget is not None:
        part = _part("--interval-budget", budget)
        with error_prefix("--interval-budget"):
            intervals["budget"] = checkpoint.for_budget(expected, part, seconds)
            if math.isfinite(slowest):
                intervals["budget_slow"] = checkpoint.for_budget(slowest, part, seconds)
    if mtbf is not None:
        failures = _seconds("--mtbf", mtbf) or 0.0
        with error_prefix("--mtbf"):
            intervals["mtbf"] = checkpoint.for_failures(expected, failures, seconds)
    return intervals


def _result(found: "Advice", typed: "Settings", intervals: "dict[str, Interval]") -> dict[str, Any]:
    best, now = found.best, found.now
    gain = found.gain
    return {
        "now": {
            "write": write_options.write_fields(now.write),
            **write_options.figures(now.prediction),
        },
        "advised": {
            "write": write_options.write_fields(best.write),
            **write_options.figures(best.prediction),
            "moving_seconds": best.moving if found.moves_counted else None,
            "total_seconds": best.seconds,
        },
        "then": dict(zip(("seconds", "low", "high"), found.outcome(), strict=True)),
        "measured": found.measured,
        "contradicted": found.contradicted,
        "worth_it": found.worth_it,
        "may_be_slower": found.may_be_slower,
        "gain": {"expected": gain.expected, "low": gain.low, "high": gain.high},
        "tried": found.candidates,
        "left_out": found.rejected,
        "commands": list(typed.commands),
        "hints": typed.hints,
        "adios2": typed.adios2,
        "checkpoints": intervals,
    }


def _show(
    found: "Advice", typed: "Settings", intervals: "dict[str, Interval]", notes: list[str]
) -> None:
    now = found.now
    click.echo(f"now        {write_options.interval(now.prediction)}")
    if stage := write_options.dominant(now.prediction):
        click.echo(f"           most of it: {stage}")
    if found.measured is not None:
        click.echo(f"measured   {units.show_seconds(found.measured)}{_doubt(found)}")
    write_options.doubts(now.prediction, notes)
    if not found.worth_it:
        click.echo(
            f"advised    leave it: none of {found.candidates:,} candidates is clearly better"
        )
    else:
        _show_best(found, typed)
    for command in typed.commands:
        click.echo(f"type       {command}")
    if typed.hints and not any("ROMIO_HINTS" in command for command in typed.commands):
        click.echo("hints      --hints FILE writes these, and ROMIO_HINTS is to name it")
    for title, lines in (("romio hint", typed.hints), ("adios2", typed.adios2)):
        for name, value in lines.items():
            click.echo(f"{title:11}{name} {value}")
    for why, interval in intervals.items():
        times = "" if interval.checkpoints is None else f", {interval.checkpoints:,} in all"
        click.echo(
            f"checkpoint every {units.show_seconds(interval.seconds)} of computation "
            f"({WHY[why]}): {interval.cost:.1%} of the run{times}"
        )


def _doubt(found: "Advice") -> str:
    if not found.contradicted:
        return ""
    return ", outside of that: the model does not know this write; the gain is by its word alone"


def _chosen(typed: "Settings") -> str:
    if typed.hints["cb_config_list"].startswith("*"):
        return "the first hosts of the job, as ROMIO takes them; others need --hosts FILE"
    return "by the names of their hosts"


def _show_best(found: "Advice", typed: "Settings") -> None:
    from penstock.learn.write_models.samples import format_ranges  # noqa: PLC0415

    now, best, gain = found.now, found.best, found.gain
    click.echo(f"advised    {write_options.words(best.write)}")
    if best.write.bursts != now.write.bursts:
        click.echo(f"           {best.write.bursts:,} aggregators, on the nodes")
        click.echo(f"           {format_ranges(best.write.placement)}")
        if best.write.shared and best.write.nodes < now.write.nodes:
            click.echo(f"           {_chosen(typed)}")
        moving = units.show_seconds(best.moving) if found.moves_counted else "not counted, unknown"
        click.echo(f"           data come to them in {moving}")
    # With a measurement nobody knows how probable its interval is.
    sure = write_options.sure(best.prediction) if found.measured is None else ""
    click.echo(f"then       {write_options.between(*found.outcome(), sure)}")
    doubt = "; it may be slower: try it once first" if found.may_be_slower else ""
    click.echo(
        f"gain       {gain.expected:.2f}x ({gain.low:.2g} to {gain.high:.2g}){doubt}; "
        f"best of {found.candidates:,}, {found.rejected:,} left out as unlike all that was seen"
    )
