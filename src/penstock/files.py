"""Files that are written whole or not at all, and refused before the work that would fill them."""

import fcntl
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from penstock.errors import InputError


def check_writable(path: Path, not_one_of: Iterable[Path | str | None] = ()) -> None:
    """Raise InputError unless `replacing(path)` can be expected to work.

    `not_one_of` are what a command reads, as far as it was given any: none may be written over.
    """
    try:
        directory = path.resolve().parent
        if path.is_dir():
            raise InputError(f"{path} is a directory; give the name of a file to write")
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a regular file; give the name of a file to write")
        if not directory.is_dir():
            raise InputError(f"{path}: there is no directory {path.parent}; create it first")
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(path)!r} cannot be written: {reason(error)}") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(f"{path}: directory {path.parent} cannot be written to; choose another")
    if path.exists() and any(_same(path, Path(other)) for other in not_one_of if other):
        raise InputError(f"{path} is read by this command; write to another file")


def _same(path: Path, other: Path) -> bool:
    """Say whether two names are of one file; what is not there is none."""
    try:
        return path.samefile(other)
    except (OSError, ValueError):
        return False


def make_directory(path: Path) -> None:
    """Make a directory for results, and see that it can be written to before any work is done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"--out {path} cannot be written to ({reason(error)}); choose another"
        ) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to, which takes the place of `path` once the block ends without error.

    A link keeps pointing where it does: what it points at is replaced.
    """
    check_writable(path)
    target = path.resolve()
    # The suffix stays last, because writers such as matplotlib choose the format by it. By chance,
    # because hosts that share a file system have processes of one number.
    partial = target.with_name(f".{secrets.token_hex(8)}.partial.{target.name[-200:]}")
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(target)
    except OSError as error:
        # A write that fails (no space left) does not say where.
        error.filename = str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def claim(file: IO[bytes], path: Path) -> None:
    """Let nobody else add to a file while it is open; InputError: somebody does."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"{path} is being written by another run; wait for it, or write elsewhere (--out)"
        ) from None
    except OSError:
        # Some file systems have no locks; a second run is then the user's to avoid.
        return


def reason(error: BaseException) -> str:
    """Return why an operation failed, in one line and without the file's name."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join((text or type(error).__name__).split())
