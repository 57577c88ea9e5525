"""Which controller a verb asks: that of a state directory, or one on another host."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from penstock.cli.common import live_options
from penstock.errors import InputError
from penstock.live.agent.user_keys import remote_controller
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.site_key import RemoteController
from penstock.live.protocol.state_directory import StateDirectory

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Site:
    """A site whose controller answers."""

    place: StateDirectory | RemoteController

    def status(self) -> messages.Status:
        """Return its status, as far as this user may know it."""
        return launcher.ask(self.place, messages.GetStatus(), messages.Status)


def site(command: F) -> F:
    """Add --state, --controller and --key-file; the verb gets the Site as `site`."""

    @wraps(command)
    def run(
        *, folder: Path | None, controller: str | None, key_file: Path | None, **arguments: Any
    ) -> Any:
        return command(site=Site(_place(folder, controller, key_file)), **arguments)

    return live_options.state(live_options.controller(run))  # type: ignore[return-value]


def _place(
    folder: Path | None, controller: str | None, key_file: Path | None
) -> StateDirectory | RemoteController:
    """Return the place that was given; a --state goes before a $PENSTOCK_CONTROLLER."""
    if controller is not None and folder is not None:
        source = click.get_current_context().get_parameter_source("controller")
        if source is ParameterSource.COMMANDLINE:
            raise InputError("give either --state or --controller")
        controller = None
    if controller is None:
        return StateDirectory(folder)
    return remote_controller(controller, key_file)
