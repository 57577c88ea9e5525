"""Libraries for LD_PRELOAD: the installed ones, and copies that every user can load."""

import hashlib
import os
import stat
import threading
from collections.abc import Iterable
from pathlib import Path

from penstock.errors import InputError
from penstock.files import replacing
from penstock.live import protocol

ASAN_ORDER = "verify_asan_link_order"

_copying = threading.Lock()


def library(name: str, folders: Iterable[str] = protocol.__path__) -> Path:
    """Return the path of a library that the build installs beside this package."""
    for folder in folders:
        if (file := Path(folder) / name).is_file():
            if set(str(file)) & {" ", ":"}:
                raise InputError(
                    f"{file} cannot be preloaded: LD_PRELOAD ends a name at a space or a colon; "
                    "install penstock elsewhere"
                )
            return file
    raise InputError(f"{name} is not installed; install penstock with a C compiler")


def with_asan(options: str) -> str:
    """Return ASAN_OPTIONS by which gcc's AddressSanitizer starts behind a preloaded library.

    Its runtime wants to be the first library, for which it has no need here: what comes before it
    replaces nothing of its own, and calls it.
    """
    if f"{ASAN_ORDER}=" in options:
        return options
    return f"{options}:{ASAN_ORDER}=0".removeprefix(":")


def readable_by_all(file: Path, folder: Path) -> Path:
    """Return the library, or a copy of it in `folder`, that processes of every user can load.

    Raises InputError if neither can be loaded. A process that cannot load a preload library runs
    without it, but the dynamic linker prints an error into the output of the job.
    """
    if _is_loadable(file):
        return file
    text = file.read_bytes()
    # A new version has a new name: running processes have the old file mapped.
    copy = folder / f"{file.stem}-{hashlib.sha256(text).hexdigest()[:16]}{file.suffix}"
    with _copying:
        if not copy.is_file():
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
            with replacing(copy) as unfinished:
                unfinished.write_bytes(text)
                unfinished.chmod(0o644)
    if not _is_loadable(copy):
        raise InputError(
            f"neither {file} nor a copy of it in {folder} can be loaded by every user; "
            "install penstock where all can read it"
        )
    return copy


def _is_loadable(file: Path) -> bool:
    if os.statvfs(file).f_flag & os.ST_NOEXEC:
        return False
    file = file.resolve()
    searchable = all(folder.stat().st_mode & stat.S_IXOTH for folder in file.parents)
    return searchable and bool(file.stat().st_mode & stat.S_IROTH)
