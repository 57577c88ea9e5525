"""What the verbs of a live deployment share: where its state is, and how its failures are told."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock import units
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.live.protocol.site_key import RemoteController

F = TypeVar("F", bound=Callable[..., Any])

state = click.option(
    "--state",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The deployment's state directory; else $XDG_RUNTIME_DIR/penstock or /tmp/penstock-UID.",
)

_PATH = click.Path(path_type=Path)
key = click.option(
    "--key-file",
    metavar="FILE",
    envvar="PENSTOCK_KEY_FILE",
    type=_PATH,
    help="The site key, the same on all hosts; 'penstock key FILE' makes one.",
)


def controller(command: F) -> F:
    """Add --controller and --key-file."""
    where = click.option(
        "--controller",
        metavar="HOST:PORT",
        envvar="PENSTOCK_CONTROLLER",
        help="The controller of another host, as its 'penstock up --listen' says.",
    )
    return where(key(command))


def remote(controller: str | None, key_file: Path | None) -> "RemoteController | None":
    """Return the controller of another host; None: it is on this one."""
    if controller is None:
        return None
    from penstock.live.protocol.site_key import RemoteController  # noqa: PLC0415 - as below

    return RemoteController.parse(controller, key_file)


@contextmanager
def telling() -> Iterator[None]:
    """Tell in one line what a deployment failed to do."""
    from penstock.live.deployment import launcher  # noqa: PLC0415 - 'run' starts often, and needs none of it

    try:
        yield
    except launcher.LaunchError as error:
        raise click.ClickException(str(error)) from error


def numbers(text: str, flag: str) -> list[int]:
    """Return I/O nodes as they are listed: "0,2"."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"{flag} {text!r} is no list of numbers; give them as 0,2")
    return [int(part) for part in parts]


def volume(text: str | None, flag: str) -> int:
    """Return bytes given in words; 0 where nothing is given."""
    if text is None:
        return 0
    try:
        return round(units.volume(text))
    except InputError as error:
        raise InputError(f"{flag}: {error}") from error
