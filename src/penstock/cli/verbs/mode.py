"""penstock mode: show or change whether jobs wait for their turns."""

from pathlib import Path

import click

from penstock.cli.common import live_options
from penstock.cli.common.live_options import MODE_MEANINGS
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.terminal import echo
from penstock.errors import InputError, unknown
from penstock.live.controller.modes import DEFAULT
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.state_directory import StateDirectory


@click.command()
@click.argument("to", metavar="[MODE]", required=False)
@click.option(
    "--user",
    metavar="USER",
    help="Change only this user's jobs; 'off' is always for the whole site.",
)
@live_options.state
@json_option
def mode(*, to: str | None, user: str | None, folder: Path | None, as_json: bool) -> None:
    """Show the mode of a deployment, or change it to observe, advise, enforce or off.

    \b
    Examples:
      penstock mode                        show the site's mode and the users that have their own
      penstock mode enforce --user alice   make one user's jobs wait for their turns
      penstock mode default --user alice   remove that user's own mode
      penstock mode off                    kill switch: open every gate, within 2 s

    USER is a name or number that the controller's host knows, or that runs a job.

    The change reaches running jobs within 2 s, and holds until the controller ends; live.mode and
    live.users of the configuration set the modes of the next one. docs/live/turns.md is the guide.
    """
    if to is None and user is not None:
        raise InputError(f"--user {user} needs a MODE: {', '.join(MODE_MEANINGS)}")
    if to is not None and to not in (*MODE_MEANINGS, DEFAULT):
        raise unknown("mode", to, [*MODE_MEANINGS, DEFAULT])
    if to == DEFAULT and user is None:
        raise InputError(f"'{DEFAULT}' needs --user: it removes that user's own mode")
    state = StateDirectory(folder)
    with live_options.launch_errors():
        if to is not None:
            _change(state, messages.SetMode(mode=to, user=user))
        status = launcher.ask(state, messages.GetStatus(), messages.Status)
    if as_json:
        emit_json({"mode": status.mode, "users": status.modes, "policy": status.policy})
        return
    off, users = status.mode == "off", sorted(status.modes)
    others = f", for all users but {', '.join(users)}" if users and not off else ""
    echo(f"{status.mode}{others}: {_meaning(status.mode)}")
    for name in users:
        own = status.modes[name]
        note = ", but the site is off: no job waits" if off else f": {_meaning(own)}"
        echo(f"{name}: {own}{note}")


def _meaning(mode: str) -> str:
    return MODE_MEANINGS.get(mode, "unknown to this version")


def _change(state: StateDirectory, message: messages.SetMode) -> None:
    try:
        launcher.ask(state, message, messages.Done)
    except launcher.LaunchError as error:
        raise launcher.LaunchError(
            f"{error}. Without a controller, gates open by themselves within the lease (live.lease)"
        ) from error
