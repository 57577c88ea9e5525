"""penstock standby: another controller when one dies."""

from pathlib import Path

import click

from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.live.deployment import launcher
from penstock.live.protocol.state_directory import StateDirectory


@click.command(short_help="Start another controller when one dies.")
@live_options.state
@json_option
def standby(*, folder: Path | None, as_json: bool) -> None:
    """Stand by a deployment: when its controller dies, start another at once.

    \b
    Examples:
      penstock standby &
      penstock standby --state ./state

    The new one goes on from what the old one kept: jobs come back to it by themselves, what tuners
    and families have learnt is there. It ends when the deployment is taken down ('penstock down'),
    and gives up, with status 1, when controllers die five times within a minute. Jobs that run
    meanwhile go on directly. Where systemd keeps the controller (deploy/systemd) it is not needed.
    """
    state = StateDirectory(folder)
    told: list[str] = []

    def tell(said: str) -> None:
        told.append(said)
        if not as_json:
            click.echo(said)

    with live_options.launch_errors():
        launcher.stand_by(state, tell)
    if as_json:
        emit_json({"state": str(state.folder), "takeovers": len(told) - 1})
