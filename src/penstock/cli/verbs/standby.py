"""penstock standby: start another controller when one dies."""

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
def standby(*, folder: Path | None, as_json: bool) -> None:
    """Watch a deployment, and start another controller at once when its controller dies.

    \b
    Examples:
      penstock standby &
      penstock standby --state ./state

    The new controller uses the state of the old one: jobs reconnect by themselves, and what was
    learned is kept. Meanwhile running jobs do direct I/O. The command ends when the deployment is
    stopped ('penstock down'), and gives up with status 1 if controllers die five times within a
    minute. It is not needed where systemd restarts the controller (deploy/systemd).
    """
    state = StateDirectory(folder)
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        if not as_json:
            echo(line)

    with live_options.launch_errors():
        launcher.stand_by(state, report)
    if as_json:
        emit_json({"state": str(state.folder), "takeovers": len(lines) - 1})
