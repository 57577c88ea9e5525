"""penstock down: stop a deployment."""

from pathlib import Path

import click

from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.terminal import echo
from penstock.live.deployment import launcher
from penstock.live.protocol.state_directory import StateDirectory


@click.command()
@live_options.state
@json_option
def down(*, folder: Path | None, as_json: bool) -> None:
    """Let the I/O nodes complete their requests, then stop them and the controller.

    \b
    Examples:
      penstock down
      penstock down --state ./state

    Running jobs continue with direct I/O. If nothing is up, the command does nothing and succeeds.
    I/O nodes that a killed controller left behind are stopped as well. An I/O node that does not
    complete its requests, because it is stopped or hangs, is reported, and killed after about 14 s.
    """
    state = StateDirectory(folder)
    with live_options.launch_errors():
        ended = launcher.down(state, lambda line: echo(f"penstock: {line}", err=True))
    if as_json:
        emit_json({"state": str(state.folder), "ended": ended})
    else:
        echo(f"down: {state.folder}" if ended else f"nothing is up in {state.folder}")
