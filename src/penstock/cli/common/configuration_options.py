"""Options that several verbs share: the configuration's, and those handed to each as one `told`."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def configured(command: F) -> F:
    """Add --config and --set."""
    command = click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override the configuration: --set site.bandwidth='2 GiB/s'. Repeatable.",
    )(command)
    return click.option(
        "--config",
        "config_file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="The configuration to read; see 'penstock config show'.",
    )(command)


def gathered(
    command: Callable[..., None], kind: type[Any], options: Sequence[Callable[[Any], Any]]
) -> Callable[..., None]:
    """Add options to a command, which gets the fields of `kind` among them as `told`."""

    @wraps(command)
    def run(**given: Any) -> None:
        told = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(told=told, **given)

    for option in options:
        run = option(run)
    return run
