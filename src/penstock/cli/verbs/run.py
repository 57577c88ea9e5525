"""penstock run: an unmodified command as a job."""

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import msgspec

from penstock.cli.common import live_options
from penstock.cli.common.terminal import echo, json_echo
from penstock.errors import InputError
from penstock.files import reason
from penstock.learn.applications import LONGEST_NAME, bounded
from penstock.live.agent import runner
from penstock.live.agent.user_keys import remote_controller
from penstock.live.batch.job_comment import job_name, job_partition
from penstock.live.protocol import job_hints
from penstock.live.protocol.job_record import direct_bytes, fail_opens, forwarded_bytes
from penstock.live.protocol.site_key import RemoteController
from penstock.live.protocol.state_directory import StateDirectory

LARGEST_COUNT = 2**31 - 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,39}")


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--name", metavar="NAME", help="The job's name; by default that of its command.")
@click.option(
    "--application",
    metavar="NAME",
    envvar="PENSTOCK_APPLICATION",
    help="The application that the job is a run of; default: $PENSTOCK_APPLICATION, --name, the "
    "name that was given to the Slurm job, or the program in COMMAND.",
)
@click.option(
    "--io-nodes",
    metavar="N",
    type=click.IntRange(0),
    help="The number of I/O nodes, the least loaded ones; 0 for direct I/O. By default all.",
)
@click.option(
    "--nodes",
    metavar="N",
    type=click.IntRange(1, LARGEST_COUNT),
    default=1,
    help="The number of compute nodes that the command uses: its size to policies that divide I/O "
    "nodes by size. By default 1.",
)
@click.option(
    "--hint",
    metavar="NAME=VALUE,...",
    envvar="PENSTOCK_HINT",
    help=f"Describe the job: any of {job_hints.EXAMPLE}; default: $PENSTOCK_HINT.",
)
@click.option("--require", is_flag=True, help="Fail if the command cannot be a job.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the job's bytes and exit status as JSON, on standard error, when it ends.",
)
@live_options.state
@live_options.controller
def run(
    *,
    command: tuple[str, ...],
    name: str | None,
    application: str | None,
    io_nodes: int | None,
    nodes: int,
    hint: str | None,
    require: bool,
    as_json: bool,
    folder: Path | None,
    controller: str | None,
    key_file: Path | None,
) -> int:
    """Run COMMAND as a job: I/O nodes decide when its data calls on managed files are made.

    \b
    Examples:
      penstock run -- ./simulation input.nml
      penstock run --name checkpoint --io-nodes 2 -- mpiexec -n 4 ./solver
      penstock run --io-nodes 0 -- tar cf /scratch/a.tar src      direct I/O, but counted
      penstock run --hint volume=1GiB,period=60s,phases=20 -- ./solver
      penstock run --application ocean -- ./run-member 17
      penstock run --nodes 8 -- mpiexec -n 64 ./solver
      penstock run --controller login1:7000 --key-file ~/.penstock.key -- ./solver

    What is learnt from a job is used for later runs of the same application by the same user. The
    program in COMMAND is found behind launchers, interpreters and containers: 'mpiexec -n 4 python3
    a.py' runs a.py.

    The exit status is that of the command, or 128 plus the number of the signal that ended it.
    Signals are passed on to the command. If no controller is up, or none that can be used, or it
    refuses the job, the command runs unmanaged, and one line on standard error says so; --require
    makes that an error. --state may name another user's deployment that serves all users ('penstock
    up --all-users'). With --controller (or $PENSTOCK_CONTROLLER and $PENSTOCK_KEY_FILE) the
    controller is on another host. Without a key file that you can read, the agent of root on this
    host gives you your own key.
    """
    if name is not None and not _NAME.fullmatch(name):
        raise InputError(f"job name {name[:60]!r}: give up to 40 letters, digits and _ . + -")
    application = _application(application or name or job_name(os.environ))
    wanted = job_hints.parse(hint or "")
    try:
        runner.check(command)
        job = partial(
            runner.run,
            command=command,
            name=name or _default_name(command[0]),
            application=application,
            partition=job_partition(os.environ),
            io_nodes=wanted.io_nodes if io_nodes is None else io_nodes,
            hints=wanted.hints,
            nodes=nodes,
        )
        place = partial(_place, folder, controller, key_file)
        outcome = _run(place, job, command, require=require)
    except runner.CannotRunError as error:
        echo(f"penstock: {error}", err=True)
        if as_json:
            failed = runner.Outcome(job="", status=error.status, counters={})
            json_echo(msgspec.json.encode(_summary(failed) | {"error": str(error)}), err=True)
        return error.status
    if as_json:
        json_echo(msgspec.json.encode(_summary(outcome)), err=True)
        return outcome.status
    if outcome.advice:
        echo(f"penstock: {outcome.job}: {outcome.advice}", err=True)
    if outcome.left_behind:
        echo(
            f"penstock: {outcome.job}: {outcome.left_behind} of its processes still run, from now "
            "on without turns, and not counted; 'wait' at the end of a script keeps them in it",
            err=True,
        )
    return outcome.status


def _summary(outcome: runner.Outcome) -> dict[str, object]:
    return {
        "job": outcome.job,
        "status": outcome.status,
        "forwarded_bytes": forwarded_bytes(outcome.counters),
        "carried_bytes": outcome.counters.get("carried_bytes", 0),
        "direct_bytes": direct_bytes(outcome.counters),
        "fail_opens": fail_opens(outcome.counters),
        **({"advice": outcome.advice} if outcome.advice else {}),
        **({"left_behind": outcome.left_behind} if outcome.left_behind else {}),
    }


def _run(
    place: Callable[[], tuple[StateDirectory, RemoteController | Path | None]],
    job: Callable[..., runner.Outcome],
    command: tuple[str, ...],
    *,
    require: bool,
) -> runner.Outcome:
    """Run a job, or its command unmanaged: whatever a deployment is, the command runs."""
    try:
        try:
            state, controller = place()
        except (InputError, OSError) as error:
            raise runner.NoJobError(reason(error)) from error
        return job(state, controller=controller)
    except runner.NoJobError as error:
        if require:
            raise InputError(str(error)) from error
        echo(f"penstock: {error}; running the command unmanaged", err=True)
    return runner.execute_unmanaged(command)


def _place(
    folder: Path | None, controller: str | None, key_file: Path | None
) -> tuple[StateDirectory, RemoteController | Path | None]:
    """Return the directory of the job's own socket, and its controller if that is not there."""
    state = StateDirectory(folder)
    if controller is not None:
        return state, remote_controller(controller, key_file)
    if state.is_of_another_user():
        return StateDirectory(), state.controller
    if not state.is_up():
        raise InputError(f"no controller in {state.folder}")
    return state, None


def _application(name: str) -> str:
    if bounded(name) != name:
        raise InputError(
            f"application {name[:60]!r}: give up to {LONGEST_NAME} bytes that can be printed"
        )
    return name


def _default_name(program: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_.+-]", "-", Path(program).name)[:40]
    return name if _NAME.fullmatch(name) else "job"
