"""Options that several verbs share, handed to each as one `told`."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any


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
