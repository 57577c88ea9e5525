"""penstock slurm: what Slurm's hooks call, and what keeps Slurm in step with the controller."""

import os
import time
from pathlib import Path

import click

from penstock import units
from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.errors import InputError
from penstock.files import reason
from penstock.live.batch import slurm as slurm_side
from penstock.live.batch.slurm import HOOK_PATIENCE, Licence
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
    help="The agent's sockets; else $PENSTOCK_RUN, /run/penstock-agent, or /tmp for a user's.",
)

patience = click.option(
    "--patience",
    metavar="SECONDS",
    envvar="PENSTOCK_PATIENCE",
    type=click.FloatRange(0.01, 60),
    default=HOOK_PATIENCE,
    help="How long to wait for the agent; else $PENSTOCK_PATIENCE, or a second.",
)


def folder_of(path: Path | None) -> AgentDirectory:
    """Return the agent's folder: as told, or the usual one."""
    usual = Path("/run/penstock-agent" if os.geteuid() == 0 else f"/tmp/pa-{os.geteuid()}")
    return AgentDirectory(path or usual)


@click.group(no_args_is_help=False)
def slurm() -> None:
    """Slurm's hooks, licences and partitions; docs/live/slurm.md is the guide."""


@slurm.command(short_help="A job begins on this node.")
@run
@patience
@json_option
def prolog(*, run_folder: Path | None, patience: float, as_json: bool) -> None:
    """Hand the job that Slurm's environment names to the node's agent (Prolog)."""
    environment = _tell(run_folder, slurm_side.adoption(os.environ), patience)
    if as_json:
        emit_json({"environment": environment})


@slurm.command(short_help="A job has ended on this node.")
@run
@patience
@json_option
def epilog(*, run_folder: Path | None, patience: float, as_json: bool) -> None:
    """Take the job that Slurm's environment names back from the node's agent (Epilog)."""
    _tell(run_folder, slurm_side.release(os.environ), patience)
    if as_json:
        emit_json({"released": os.environ["SLURM_JOB_ID"]})


def _tell(
    run_folder: Path | None, message: AdoptJob | ReleaseJob, patience: float
) -> dict[str, str]:
    folder = folder_of(run_folder)
    try:
        return slurm_side.tell(folder, message, patience)
    except OSError as error:
        raise click.ClickException(f"{folder.control}: {reason(error)}") from error


@slurm.command(short_help="Jobs that the node's agent keeps.")
@run
@json_option
def jobs(*, run_folder: Path | None, as_json: bool) -> None:
    """List the jobs that the node's agent keeps."""
    folder = folder_of(run_folder)
    try:
        kept = slurm_side.kept(folder)
    except OSError as error:
        raise click.ClickException(f"{folder.control}: {reason(error)}") from error
    emit_json({"jobs": kept}) if as_json else click.echo("\n".join(kept) or "no jobs")


@slurm.command(short_help="Keep licences of a file system back.")
@click.argument("licence", metavar="NAME:TOTAL")
@click.option("--keep-back", metavar="N", type=click.IntRange(0), help="How many from now on.")
@json_option
def licences(*, licence: str, keep_back: int | None, as_json: bool) -> None:
    """Show how many licences of a file system are kept back, or keep N of them back.

    \b
    Examples:
      penstock slurm licences scratch:8
      penstock slurm licences scratch:8 --keep-back 3

    slurm.conf has 'Licenses=scratch:8', and jobs that do much I/O ask for one with
    'sbatch -L scratch:1': Slurm starts eight at a time, less those that are kept back.
    """
    told = Licence.parse(licence)
    if keep_back is not None:
        slurm_side.keep_back(told, keep_back)
    kept = slurm_side.kept_back(told) or 0
    if as_json:
        emit_json({"licence": told.name, "total": told.total, "kept_back": kept})
    else:
        click.echo(f"{kept} of {told.total} {told.name} licences are kept back")


@slurm.command(short_help="Keep Slurm in step with the controller.")
@live_options.state
@click.option("--licence", "licence", metavar="NAME:TOTAL", help="Keep its count in step.")
@click.option(
    "--conflicts",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write each partition's I/O there, for job_submit.lua.",
)
@click.option("--every", default="5 s", help="How often.")
@click.option("--once", is_flag=True, help="Look once (twice for --conflicts), and end.")
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
    """Keep licences and the partitions' I/O in step with the controller, until interrupted.

    \b
    Examples:
      penstock slurm watch --licence scratch:8 --conflicts /run/penstock-slurm/conflicts

    As many licences are kept back as jobs wait for their turn. It runs where slurmctld does, as
    root or SlurmUser. What fails is told, and tried again.
    """
    if licence is None and conflicts is None:
        raise InputError("nothing to keep in step; give --licence, --conflicts or both")
    told = None if licence is None else Licence.parse(licence)
    step = _Step(StateDirectory(folder), told, conflicts, units.seconds(every))
    while True:
        try:
            done = step.take()
            if as_json:
                emit_json(done)
        except (InputError, OSError) as error:
            if once:
                raise click.ClickException(reason(error)) from error
            click.echo(f"penstock: {reason(error)}", err=True)
        if once:
            return


class _Step:
    """One look at the controller and Slurm, and what follows from it."""

    def __init__(
        self, state: StateDirectory, licence: Licence | None, conflicts: Path | None, every: float
    ) -> None:
        self._state, self._licence, self._conflicts = state, licence, conflicts
        self._every = every
        self._before: tuple[float, messages.Status] | None = None

    def take(self) -> dict[str, object]:
        if self._before is None and self._conflicts is not None:
            self._before = (time.monotonic(), self._ask())
        time.sleep(self._every)
        status, now = self._ask(), time.monotonic()
        done: dict[str, object] = {}
        if self._licence is not None:
            done["kept_back"] = slurm_side.licences_to_keep(status, self._licence)
            slurm_side.keep_back(self._licence, slurm_side.licences_to_keep(status, self._licence))
        if self._conflicts is not None and self._before is not None:
            before, self._before = self._before, (now, status)
            scores = dict.fromkeys(slurm_side.all_partitions(), 0.0) | slurm_side.conflicts(
                before[1], status, slurm_side.running_jobs(), now - before[0]
            )
            slurm_side.write_conflicts(self._conflicts, scores)
            done["conflicts"] = scores
        return done

    def _ask(self) -> messages.Status:
        # Root asks whosever controller it is, which 'penstock status' would not.
        with ControlConnection(self._state.controller) as controller:
            return controller.ask(messages.GetStatus(), messages.Status)
