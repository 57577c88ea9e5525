"""penstock slurm: the hooks that Slurm calls, and updates of its licences and partitions."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from penstock import units
from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.terminal import echo
from penstock.errors import InputError
from penstock.files import reason
from penstock.live.batch import hooks, queue
from penstock.live.batch import licences as licence_reservation
from penstock.live.batch.hooks import HOOK_TIMEOUT
from penstock.live.batch.licences import Licence
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.hook_messages import AdoptJob, AgentDirectory, ReleaseJob
from penstock.live.protocol.state_directory import StateDirectory

run = click.option(
    "--run",
    "run_folder",
    metavar="DIR",
    envvar="PENSTOCK_RUN",
    type=click.Path(path_type=Path),
    help="The directory of the agent's sockets; default: $PENSTOCK_RUN, or /run/penstock-agent for "
    "root, or /tmp/pa-UID.",
)

patience = click.option(
    "--patience",
    metavar="SECONDS",
    envvar="PENSTOCK_PATIENCE",
    type=click.FloatRange(0.01, 60),
    default=HOOK_TIMEOUT,
    help="How long to wait for the agent; default: $PENSTOCK_PATIENCE, or 1.",
)


def agent_directory(path: Path | None) -> AgentDirectory:
    """Return the agent's directory: as given, or the default."""
    default = Path("/run/penstock-agent" if os.geteuid() == 0 else f"/tmp/pa-{os.geteuid()}")
    return AgentDirectory(path or default)


@click.group(no_args_is_help=False)
def slurm() -> None:
    """Slurm's hooks, licences and partitions; docs/live/slurm.md is the guide."""


@slurm.command(short_help="Register a job that begins on this node.")
@run
@patience
@json_option
def prolog(*, run_folder: Path | None, patience: float, as_json: bool) -> None:
    """Register the job of Slurm's environment with this node's agent (for Prolog)."""
    environment = _send(run_folder, hooks.adopt_message(os.environ), patience)
    if as_json:
        emit_json({"environment": environment})


@slurm.command(short_help="Release a job that has ended on this node.")
@run
@patience
@json_option
def epilog(*, run_folder: Path | None, patience: float, as_json: bool) -> None:
    """Release the job of Slurm's environment from this node's agent (for Epilog)."""
    _send(run_folder, hooks.release_message(os.environ), patience)
    if as_json:
        emit_json({"released": os.environ["SLURM_JOB_ID"]})


def _send(
    run_folder: Path | None, message: AdoptJob | ReleaseJob, patience: float
) -> dict[str, str]:
    folder = agent_directory(run_folder)
    with _agent_errors(folder):
        return hooks.send(folder, message, patience)


@contextmanager
def _agent_errors(folder: AgentDirectory) -> Iterator[None]:
    """Report in one line that the agent is not there, or does not answer."""
    try:
        yield
    except TimeoutError as error:
        raise click.ClickException(f"the agent at {folder.control} does not answer") from error
    except OSError as error:
        raise click.ClickException(
            f"no agent at {folder.control} ({reason(error)}); start it with 'penstock agent', or "
            "give its --run"
        ) from error


@slurm.command(short_help="List the jobs of this node's agent.")
@run
@json_option
def jobs(*, run_folder: Path | None, as_json: bool) -> None:
    """List the jobs that this node's agent serves."""
    folder = agent_directory(run_folder)
    with _agent_errors(folder):
        names = hooks.adopted_jobs(folder)
    emit_json({"jobs": names}) if as_json else echo("\n".join(names) or "no jobs")


@slurm.command(short_help="Reserve licences of a file system.")
@click.argument("licence", metavar="NAME:TOTAL")
@click.option(
    "--keep-back",
    metavar="N",
    type=click.IntRange(0),
    help="Reserve N licences, so that jobs cannot use them.",
)
@json_option
def licences(*, licence: str, keep_back: int | None, as_json: bool) -> None:
    """Show how many licences of a file system are reserved, or reserve N of them.

    \b
    Examples:
      penstock slurm licences scratch:8
      penstock slurm licences scratch:8 --keep-back 3

    With 'Licenses=scratch:8' in slurm.conf, jobs that do much I/O request one licence with
    'sbatch -L scratch:1'. Slurm then runs at most eight of them, minus the reserved licences.
    """
    parsed = Licence.parse(licence)
    if keep_back is not None:
        licence_reservation.hold_back(parsed, keep_back)
    reserved = licence_reservation.held_back(parsed) or 0
    if as_json:
        emit_json({"licence": parsed.name, "total": parsed.total, "kept_back": reserved})
    else:
        echo(f"{reserved} of {parsed.total} {parsed.name} licences are reserved")


@slurm.command(short_help="Update Slurm from the controller's status.")
@live_options.state
@click.option("--licence", "licence", metavar="NAME:TOTAL", help="The licence to reserve.")
@click.option(
    "--conflicts",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write each partition's I/O load to this file, for job_submit.lua.",
)
@click.option(
    "--every", metavar="TIME", default="5 s", show_default=True, help="The time between updates."
)
@click.option("--once", is_flag=True, help="Update once, and end.")
@json_option
def watch(
    *,
    folder: Path | None,
    licence: str | None,
    conflicts: Path | None,
    every: str,
    once: bool,
    as_json: bool,
) -> None:
    """Update reserved licences and the partitions' I/O load repeatedly, until interrupted.

    \b
    Examples:
      penstock slurm watch --licence scratch:8 --conflicts /run/penstock-slurm/conflicts

    As many licences are reserved as jobs wait for their turn. Run it on the host of slurmctld, as
    root or SlurmUser. Errors are printed, and the next update tries again.
    """
    if licence is None and conflicts is None:
        raise InputError("nothing to update; give --licence, --conflicts or both")
    parsed = None if licence is None else Licence.parse(licence)
    update = _Update(StateDirectory(folder), parsed, conflicts, units.seconds(every))
    while True:
        try:
            done = update.run()
            if as_json:
                emit_json(done)
        except (InputError, OSError) as error:
            if once:
                raise click.ClickException(reason(error)) from error
            echo(f"penstock: {reason(error)}", err=True)
        if once:
            return


class _Update:
    """Reads the controller's status, and updates Slurm from it."""

    def __init__(
        self, state: StateDirectory, licence: Licence | None, conflicts: Path | None, every: float
    ) -> None:
        self._state, self._licence, self._conflicts = state, licence, conflicts
        self._every = every
        self._before: tuple[float, messages.Status] | None = None

    def run(self) -> dict[str, object]:
        if self._before is None and self._conflicts is not None:
            self._before = (time.monotonic(), self._ask())
        time.sleep(self._every)
        status, now = self._ask(), time.monotonic()
        done: dict[str, object] = {}
        if self._licence is not None:
            done["kept_back"] = licence_reservation.licences_to_hold_back(status, self._licence)
            licence_reservation.hold_back(
                self._licence, licence_reservation.licences_to_hold_back(status, self._licence)
            )
        if self._conflicts is not None and self._before is not None:
            before, self._before = self._before, (now, status)
            scores = dict.fromkeys(queue.available_partitions(), 0.0) | queue.partition_loads(
                before[1], status, queue.running_jobs(), now - before[0]
            )
            queue.write_loads(self._conflicts, scores)
            done["conflicts"] = scores
        return done

    def _ask(self) -> messages.Status:
        # Unlike 'penstock status', root may ask a controller of any user.
        with ControlConnection(self._state.controller) as controller:
            return controller.ask(messages.GetStatus(), messages.Status)
