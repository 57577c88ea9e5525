"""penstock down: the end of a deployment."""

from pathlib import Path

import click

from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.live.deployment import launcher
from penstock.live.protocol.state_directory import StateDirectory


@click.command(short_help="Take down what 'up' brought up.")
@live_options.state
@json_option
def down(*, folder: Path | None, as_json: bool) -> None:
    """Let the I/O nodes finish what they began, then end them and the controller.

    \b
    Examples:
      penstock down
      penstock down --state ./state

    Jobs that still run go on, directly. Where nothing is up there is nothing to do, which is no
    error. What a controller that was killed left behind is ended as well. An I/O node that does not
    finish, because it is stopped or hangs, is told of, and killed after some 14 s.
    """
    state = StateDirectory(folder)
    with live_options.launch_errors():
        ended = launcher.down(state, lambda said: click.echo(f"penstock: {said}", err=True))
    if as_json:
        emit_json({"state": str(state.folder), "ended": ended})
    else:
        click.echo(f"down: {state.folder}" if ended else f"nothing is up in {state.folder}")
