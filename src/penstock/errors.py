"""Errors in a user's input: each says what is wrong, where, and what to do about it."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Wrong input: the command line prints it on one line and exits with status 2."""


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for a name that does not exist, with the most similar one that does."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
    return InputError(f"unknown {kind} {name!r}; {hint}")


@contextmanager
def error_prefix(subject: object) -> Iterator[None]:
    """Put `subject` (a file, a flag) in front of every InputError that the block raises."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{subject}: {error}") from error
