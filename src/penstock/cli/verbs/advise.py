"""penstock advise: how to write, what that gains, and the commands and hints to set."""

import math
import re
from pathlib import Path
from typing import Any

import click

from penstock import units
from penstock.cli.common import write_options
from penstock.cli.common.options import typed
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.terminal import echo
from penstock.cli.common.write_options import WriteOptions
from penstock.errors import InputError, error_prefix
from penstock.files import check_writable, reason, replacing
from penstock.learn.write_models import advice, checkpoint
from penstock.learn.write_models.advice import Advice, Settings
from penstock.learn.write_models.checkpoint import Interval
from penstock.learn.write_models.samples import format_ranges
from penstock.model.write import Write

HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
WHY = {
    "budget": "the budget",
    "budget_slow": "the budget, at the slow end of the interval",
    "mtbf": "the least time lost to failures",
}


@click.command()
@typed(WriteOptions)
@click.option(
    "--measured", metavar="TIME", help="The measured time of the write as it is now ('48 s')."
)
@click.option(
    "--aggregators/--no-aggregators",
    default=True,
    show_default=True,
    help="Let some processes write for others; otherwise only stripes are chosen.",
)
@click.option(
    "--gather",
    metavar="BANDWIDTH",
    help="The bandwidth into an aggregator's node ('5 GB/s'); by default that of the machine's "
    "compute nodes.",
)
@click.option(
    "--hosts",
    "hosts_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The names of the job's nodes in order ('scontrol show hostnames'): with one shared file, "
    "any of them may then be aggregators; otherwise the first ones are.",
)
@click.option(
    "--path",
    default="OUTPUT",
    show_default=True,
    help="What the program writes to: the shared file, or the directory of its files.",
)
@click.option(
    "--hints",
    "hints_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the hints to this file, for ROMIO_HINTS.",
)
@click.option(
    "--interval-budget",
    metavar="PART",
    help="The part of the run that checkpoints may take ('10%'); prints how often to write one.",
)
@click.option(
    "--mtbf",
    metavar="TIME",
    help="The mean time between failures ('2 d'); prints the best checkpoint interval.",
)
@click.option(
    "--compute-time",
    metavar="TIME",
    help="The run's computing time without writes; prints the number of checkpoints.",
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
    """Advise how to write: which processes write, over how many targets, and how often.

    \b
    Examples:
      penstock advise --machine titan --nodes 256 --cores 16 --burst "100 MB" --shared
      penstock advise --machine titan --log run.darshan --interval-budget 10% --compute-time "6 h"
      penstock advise --model mine.json --nodes 64 --cores 16 --burst "1 GB" --measured "48 s"

    Candidates are numbers of aggregators (processes that write for others), placed as MPI-IO or
    ADIOS2 would, and stripe settings where users can choose them; docs/writes/predict.md lists
    them. The time to move data to aggregators counts if a bandwidth for it is known. The gain is a
    prediction with an interval: measure the result.
    """
    if hints_file is not None:
        check_writable(hints_file, not_one_of=(*options.inputs, hosts_file))
    model = options.model()
    write, notes = options.write(model.machine)
    hosts = _hosts(hosts_file, write)
    result = advice.advise(
        model,
        write,
        measured=_seconds("--measured", measured),
        gather=_bandwidth("--gather", gather),
        aggregators=aggregators,
        hosts=hosts,
    )
    commands = advice.settings(model.machine, result, path, hints_file=hints_file, hosts=hosts)
    intervals = _intervals(result, interval_budget, mtbf, compute_time)
    if hints_file is not None and commands.hints:
        with replacing(hints_file) as partial:
            partial.write_text(commands.hints_file(), encoding="utf-8")
    elif hints_file is not None:
        notes.append(f"no hints are needed: {hints_file} was not written")
    if as_json:
        emit_json(
            {"machine": model.machine.name, "notes": notes} | _result(result, commands, intervals)
        )
        return
    echo(f"{model.machine.name}: {write_options.describe(write)}")
    _show(result, commands, intervals, notes)


def _hosts(path: Path | None, write: Write) -> tuple[str, ...]:
    if path is None:
        return ()
    with error_prefix("--hosts"):
        try:
            names = tuple(path.read_text(encoding="utf-8").split())
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {reason(error)}") from error
        if not write.shared:
            raise InputError("only for one shared file (--shared); leave it out")
        if wrong := next((name for name in names if not HOST.fullmatch(name)), None):
            raise InputError(f"{path}: {wrong[:40]!r} is not a host name; give one per line")
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
    result: Advice, budget: str | None, mtbf: str | None, compute: str | None
) -> dict[str, Interval]:
    """Return how often to write a checkpoint, for each criterion."""
    seconds = _seconds("--compute-time", compute)
    if seconds is not None and budget is None and mtbf is None:
        raise InputError("--compute-time needs --interval-budget or --mtbf")
    expected, _, slowest = result.outcome()
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


def _result(result: Advice, commands: Settings, intervals: dict[str, Interval]) -> dict[str, Any]:
    best, now, gain = result.best, result.now, result.gain
    return {
        "now": {
            "write": write_options.write_fields(now.write),
            **write_options.figures(now.prediction),
        },
        "advised": {
            "write": write_options.write_fields(best.write),
            **write_options.figures(best.prediction),
            "moving_seconds": best.moving if result.moves_counted else None,
            "total_seconds": best.seconds,
        },
        "then": dict(zip(("seconds", "low", "high"), result.outcome(), strict=True)),
        "measured": result.measured,
        "contradicted": result.contradicted,
        "worth_it": result.worth_it,
        "may_be_slower": result.may_be_slower,
        "gain": {"expected": gain.expected, "low": gain.low, "high": gain.high},
        "tried": result.candidates,
        "left_out": result.rejected,
        "commands": list(commands.commands),
        "hints": commands.hints,
        "adios2": commands.adios2,
        "checkpoints": intervals,
    }


def _show(
    result: Advice, commands: Settings, intervals: dict[str, Interval], notes: list[str]
) -> None:
    now = result.now
    echo(f"now        {write_options.interval(now.prediction)}")
    if stage := write_options.dominant(now.prediction):
        echo(f"           most of it: {stage}")
    if result.measured is not None:
        echo(f"measured   {units.show_seconds(result.measured)}{_doubt(result)}")
    write_options.show_notes(now.prediction, notes)
    if not result.worth_it:
        echo(f"advised    no change: none of {result.candidates:,} candidates is clearly better")
    else:
        _show_best(result, commands)
    for command in commands.commands:
        echo(f"type       {command}")
    if commands.hints and not any("ROMIO_HINTS" in command for command in commands.commands):
        echo("hints      write these with --hints FILE, and set ROMIO_HINTS to its name")
    for title, lines in (("romio hint", commands.hints), ("adios2", commands.adios2)):
        for name, value in lines.items():
            echo(f"{title:11}{name} {value}")
    for why, interval in intervals.items():
        times = "" if interval.checkpoints is None else f", {interval.checkpoints:,} in total"
        echo(
            f"checkpoint every {units.show_seconds(interval.seconds)} of computation "
            f"({WHY[why]}): {interval.cost:.1%} of the run{times}"
        )


def _doubt(result: Advice) -> str:
    if not result.contradicted:
        return ""
    return ", outside of the interval: the model does not fit this write, and the gain is uncertain"


def _hosts_note(commands: Settings) -> str:
    if commands.hints["cb_config_list"].startswith("*"):
        return "the first hosts of the job, as ROMIO takes them; use --hosts FILE for others"
    return "selected by host name"


def _show_best(result: Advice, commands: Settings) -> None:
    now, best, gain = result.now, result.best, result.gain
    echo(f"advised    {write_options.describe(best.write)}")
    if best.write.bursts != now.write.bursts:
        echo(f"           {best.write.bursts:,} aggregators, on the nodes")
        echo(f"           {format_ranges(best.write.placement)}")
        if best.write.shared and best.write.nodes < now.write.nodes:
            echo(f"           {_hosts_note(commands)}")
        moving = units.show_seconds(best.moving) if result.moves_counted else "unknown, not counted"
        echo(f"           time to move data to them: {moving}")
    # With a measurement the probability of the interval is unknown.
    confidence = write_options.confidence(best.prediction) if result.measured is None else ""
    echo(f"then       {write_options.between(*result.outcome(), confidence)}")
    doubt = "; it may be slower: try it once first" if result.may_be_slower else ""
    echo(
        f"gain       {gain.expected:.2f}x ({gain.low:.2g} to {gain.high:.2g}){doubt}; "
        f"best of {result.candidates:,}, {result.rejected:,} outside of the training data"
    )
