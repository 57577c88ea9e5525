"""penstock mode: whether jobs wait for their turns, shown or changed while they run."""

from pathlib import Path

import click

from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.errors import InputError, unknown
from penstock.live.controller.modes import DEFAULT
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.state_directory import StateDirectory

MEANS = {
    "observe": "nobody waits; 'penstock top' shows who would",
    "advise": "nobody waits; 'penstock explain' says what would change",
    "enforce": "jobs wait for their turns",
    "off": "every gate is open, whatever users' modes say",
}


@click.command(short_help="Show or change whether jobs wait for turns.")
@click.argument("to", metavar="[MODE]", required=False)
@click.option("--user", metavar="USER", help="Only this user's jobs; 'off' is for the whole site.")
@live_options.state
@json_option
def mode(*, to: str | None, user: str | None, folder: Path | None, as_json: bool) -> None:
    """Show the mode of a deployment, or change it to observe, advise, enforce or off.

    \b
    Examples:
      penstock mode                        the site's mode, and users' whose is another
      penstock mode enforce --user alice   one user's jobs wait for their turns
      penstock mode default --user alice   they go by the site's mode again
      penstock mode off                    the kill switch: every gate opens at once

    USER is a name or a number that the controller's host knows, or who runs a job.

    Running jobs hear of it at once. It holds until the controller ends; live.mode and live.users
    say how the next one begins. docs/live/turns.md is the guide.
    """
    if to is None and user is not None:
        raise InputError(f"--user {user} needs a MODE: {', '.join(MEANS)}")
    if to is not None and to not in (*MEANS, DEFAULT):
        raise unknown("mode", to, [*MEANS, DEFAULT])
    if to == DEFAULT and user is None:
        raise InputError(f"{DEFAULT} takes a user's own mode away; give --user")
    state = StateDirectory(folder)
    with live_options.launch_errors():
        if to is not None:
            _change(state, messages.SetMode(mode=to, user=user))
        found = launcher.ask(state, messages.GetStatus(), messages.Status)
    if as_json:
        emit_json({"mode": found.mode, "users": found.modes, "policy": found.policy})
        return
    click.echo(f"{found.mode}: {MEANS.get(found.mode, 'not known to this version')}")
    for name, own in sorted(found.modes.items()):
        above = ", while the site is off: nobody waits" if found.mode == "off" else ""
        click.echo(f"{name}: {own}{above}")


def _change(state: StateDirectory, govern: messages.SetMode) -> None:
    try:
        launcher.ask(state, govern, messages.Done)
    except launcher.LaunchError as error:
        raise launcher.LaunchError(
            f"{error}. Without its word gates open by themselves within the lease (live.lease)"
        ) from error
