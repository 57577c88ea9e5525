"""Options of the verbs for a live deployment: its state directory, a remote controller, numbers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from penstock import units
from penstock.cli.common.options import option
from penstock.errors import InputError, error_prefix
from penstock.live.protocol.site_key import RemoteController
from penstock.live.protocol.stripe import check_stripe

F = TypeVar("F", bound=Callable[..., Any])
MODE_MEANINGS = {
    "observe": "no job waits; 'penstock top' shows which would",
    "advise": "no job waits; 'penstock explain' says what would change",
    "enforce": "jobs wait for their turns",
    "off": "every gate is open, for all users",
}

state_directory = option(
    "--state",
    metavar="DIR",
    # 'run' passes on a command whatever the directory is: no check here may end it.
    type=click.Path(path_type=Path, readable=False),
    help="The state directory of the deployment; default: $XDG_RUNTIME_DIR/penstock, or "
    "/tmp/penstock-UID.",
)
key_file = option(
    "--key-file",
    metavar="FILE",
    envvar="PENSTOCK_KEY_FILE",
    type=click.Path(path_type=Path, readable=False),
    help="The site key, the same on all hosts; 'penstock key FILE' makes one. For jobs, a key of "
    "their user does. [$PENSTOCK_KEY_FILE]",
)
controller_address = option(
    "--controller",
    metavar="HOST:PORT",
    envvar="PENSTOCK_CONTROLLER",
    help="The address of a controller on another host, as its 'penstock up --listen' prints it. "
    "[$PENSTOCK_CONTROLLER]",
)
state = state_directory("folder")
key = key_file("key_file")


def controller(command: F) -> F:
    """Add --controller and --key-file."""
    return controller_address("controller")(key(command))


def remote(controller: str | None, key_file: Path | None) -> RemoteController | None:
    """Return the controller on another host, or None if it is on this one."""
    return None if controller is None else RemoteController.parse(controller, key_file)


@contextmanager
def launch_errors() -> Iterator[None]:
    """Report in one line why a deployment failed."""
    # Imported here because 'run' starts often and does not need the launcher.
    from penstock.live.deployment import launcher  # noqa: PLC0415

    try:
        yield
    except launcher.LaunchError as error:
        raise click.ClickException(str(error)) from error


def numbers(text: str, flag: str) -> list[int]:
    """Return the numbers in a list such as "0,2"."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"{flag} {text!r} is not a list of numbers; write it as 0,2")
    return [int(part) for part in parts]


def counts(text: str | None, flag: str, limits: tuple[int, int]) -> tuple[int, ...] | None:
    """Return the numbers in a list without duplicates, all within the limits; None stays None."""
    if text is None:
        return None
    distinct = tuple(dict.fromkeys(numbers(text, flag)))
    for number in distinct:
        if not limits[0] <= number <= limits[1]:
            raise InputError(f"{flag} {number}: give {limits[0]} to {limits[1]}")
    return distinct


def sizes(text: str | None) -> tuple[int, ...] | None:
    """Return the request sizes in the list of --sizes; None stays None."""
    if text is None:
        return None
    distinct = tuple(dict.fromkeys(volume(part.strip(), "--sizes") for part in text.split(",")))
    if min(distinct) < 1:
        raise InputError(f"--sizes {text}: a request has at least one byte")
    return distinct


def seconds(text: str | None, flag: str) -> float | None:
    """Return the time of a flag; None stays None."""
    with error_prefix(flag):
        return None if text is None else units.seconds(text)


def stripe(text: str | None) -> int:
    """Return the bytes of --stripe; 0 if the flag is not given."""
    return check_stripe(volume(text, "--stripe"), f"--stripe {text}")


def volume(text: str | None, flag: str) -> int:
    """Return a size in bytes; 0 if the flag is not given."""
    if text is None:
        return 0
    with error_prefix(flag):
        return round(units.volume(text))
