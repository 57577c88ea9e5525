"""penstock run: an unmodified command as a job."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import click
import msgspec

from penstock import units
from penstock.cli.common import live_options
from penstock.errors import InputError, unknown
from penstock.live.agent import runner
from penstock.live.protocol import messages
from penstock.live.protocol.counters import direct_bytes, fail_opens, forwarded_bytes
from penstock.live.protocol.state_directory import StateDirectory

_HINTS: Mapping[str, Callable[[str], float]] = {
    "volume": units.volume,
    "period": units.seconds,
    "phases": float,
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,39}")


@click.command(
    short_help="Run an unmodified command as a job.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--name", metavar="NAME", help="What the job is called; else as its command.")
@click.option(
    "--io-nodes",
    metavar="N",
    type=click.IntRange(0),
    help="So many I/O nodes, the least loaded; 0: direct. Else all.",
)
@click.option(
    "--hint",
    metavar="WHAT=VALUE,...",
    help="What its phases are like: volume=1GiB,period=60s,phases=20, or some of these.",
)
@click.option("--require", is_flag=True, help="Fail where no controller is up.")
@click.option(
    "--json", "as_json", is_flag=True, help="When it ends, say what it moved, on standard error."
)
@live_options.state
@live_options.controller
def run(
    *,
    command: tuple[str, ...],
    name: str | None,
    io_nodes: int | None,
    hint: str | None,
    require: bool,
    as_json: bool,
    folder: Path | None,
    controller: str | None,
    key_file: Path | None,
) -> int:
    """Run COMMAND as a job: its data calls on managed files go to I/O nodes.

    \b
    Examples:
      penstock run -- ./simulation input.nml
      penstock run --name checkpoint --io-nodes 2 -- mpiexec -n 4 ./solver
      penstock run --io-nodes 0 -- tar cf /scratch/a.tar src      direct, but counted
      penstock run --hint volume=1GiB,period=60s,phases=20 -- ./solver
      penstock run --controller login1:7000 --key-file ~/.penstock.key -- ./solver

    The exit status is the command's, 128 and the signal's number if a signal ended it. Signals go
    to the command. Where nothing is up the command is run all the same, plainly, and one line on
    standard error says so; --require makes that an error. With --controller (or
    $PENSTOCK_CONTROLLER and $PENSTOCK_KEY_FILE) the controller is on another host.
    """
    state = StateDirectory(folder)
    where = live_options.remote(controller, key_file)
    name = _name(command[0]) if name is None else name
    if not _NAME.fullmatch(name):
        raise InputError(f"job name {name!r}: give up to 40 letters, digits and _ . + -")
    hints = _hints(hint)
    try:
        runner.check(command)
        job = partial(
            runner.run, state, command, name=name, io_nodes=io_nodes, controller=where, hints=hints
        )
        outcome = _run(job, command, state if where is None else None, require=require)
    except runner.CannotRunError as error:
        click.echo(f"penstock: {error}", err=True)
        return error.status
    if as_json:
        click.echo(msgspec.json.encode(_told(outcome)), err=True)
    elif outcome.advice:
        click.echo(f"penstock: {outcome.job}: {outcome.advice}", err=True)
    return outcome.status


def _told(outcome: runner.Outcome) -> dict[str, object]:
    return {
        "job": outcome.job,
        "status": outcome.status,
        "forwarded_bytes": forwarded_bytes(outcome.counters),
        "direct_bytes": direct_bytes(outcome.counters),
        "fail_opens": fail_opens(outcome.counters),
        **({"advice": outcome.advice} if outcome.advice else {}),
    }


def _run(
    job: Callable[[], runner.Outcome],
    command: tuple[str, ...],
    local: StateDirectory | None,
    *,
    require: bool,
) -> runner.Outcome:
    """Run a job, or its command plainly; `local` is the state of a controller of this host."""
    try:
        if local is not None:
            _check_up(local)
        return job()
    except runner.NoJobError as error:
        if require:
            raise InputError(f"{error}; 'penstock up' brings a deployment up") from error
        click.echo(f"penstock: {error}; running the command plainly", err=True)
    return runner.execute_unmanaged(command)


def _hints(text: str | None) -> messages.Hints:
    """Read WHAT=VALUE,...; InputError: it is none."""
    found: dict[str, float] = {}
    for part in filter(None, (text or "").split(",")):
        what, _, value = part.partition("=")
        if what not in _HINTS:
            raise unknown("hint", what, _HINTS)
        if what in found:
            raise InputError(f"--hint says {what} twice; say it once")
        try:
            found[what] = _HINTS[what](value)
            msgspec.convert(found, messages.Hints)
        except (InputError, ValueError) as error:
            raise InputError(
                f"--hint {part!r}: {error}; give volume=1GiB,period=60s,phases=20, or some of these"
            ) from error
    return messages.Hints(**found)


def _check_up(state: StateDirectory) -> None:
    try:
        up = state.is_up()
    except InputError as error:  # such as another user's directory: no reason not to run
        raise runner.NoJobError(str(error)) from error
    if not up:
        raise runner.NoJobError(f"no controller in {state.folder}")


def _name(program: str) -> str:
    kept = re.sub(r"[^A-Za-z0-9_.+-]", "-", Path(program).name)[:40]
    return kept if _NAME.fullmatch(kept) else "job"
