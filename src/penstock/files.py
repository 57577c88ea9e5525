"""Output files: checked before the work starts, and written completely or not at all."""

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

    `not_one_of` are the files that a command reads, which must not be overwritten.
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
    """Whether two names are the same file; False if one does not exist."""
    try:
        return path.samefile(other)
    except (OSError, ValueError):
        return False


def make_directory(path: Path) -> None:
    """Create a directory for results, and check that it is writable before any work is done."""
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
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a path to write to, which replaces `path` when the block ends without an error.

    If `path` is a symbolic link, its target is replaced. A `private` file is the user's alone,
    whatever the umask.
    """
    check_writable(path)
    target = path.resolve()
    # The suffix stays last, because writers such as matplotlib choose the format by it. The name is
    # random, because process numbers repeat on hosts that share a file system.
    partial = target.with_name(f".{secrets.token_hex(8)}.partial.{target.name[-200:]}")
    try:
        if private:
            partial.touch(mode=0o600, exist_ok=False)
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(target)
    except OSError as error:
        # The error of a failed write (no space left) lacks the name of the file.
        error.filename = str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def claim(file: IO[bytes], path: Path) -> None:
    """Lock a file against other runs while it is open; InputError if another run has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"{path} is being written by another run; wait for it, or write elsewhere (--out)"
        ) from None
    except OSError:
        # Some file systems have no locks; avoiding a second run is then up to the user.
        return


def reason(error: BaseException) -> str:
    """Return why an operation failed, in one line and without the file's name."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join((text or type(error).__name__).split())
