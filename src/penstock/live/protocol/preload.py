"""The libraries that processes preload: where the build put them, where every user reads them."""

import hashlib
import os
import stat
import threading
from pathlib import Path

from penstock.errors import InputError
from penstock.files import replacing
from penstock.live import protocol

_copying = threading.Lock()


def library(name: str) -> Path:
    """Return a library that the build installs beside this package."""
    for folder in protocol.__path__:
        if (file := Path(folder) / name).is_file():
            if set(str(file)) & {" ", ":"}:
                raise InputError(
                    f"{file} cannot be preloaded: LD_PRELOAD ends a name at a space or a colon; "
                    "install penstock elsewhere"
                )
            return file
    raise InputError(f"{name} is not installed; install penstock with a C compiler")


def for_everybody(file: Path, folder: Path) -> Path:
    """Return a library that every user's processes can load: it, or a copy of it in a folder.

    InputError: neither can be. A process that cannot load what it should preload goes on without,
    but says so in its job's output.
    """
    if _loads(file):
        return file
    text = file.read_bytes()
    # A name a content: an upgrade does not change what running processes have mapped.
    copy = folder / f"{file.stem}-{hashlib.sha256(text).hexdigest()[:16]}{file.suffix}"
    with _copying:
        if not copy.is_file():
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
            with replacing(copy) as unfinished:
                unfinished.write_bytes(text)
                unfinished.chmod(0o644)
    if not _loads(copy):
        raise InputError(
            f"neither {file} nor a copy of it in {folder} can be loaded by every user; "
            "install penstock where all can read it"
        )
    return copy


def _loads(file: Path) -> bool:
    if os.statvfs(file).f_flag & os.ST_NOEXEC:
        return False
    file = file.resolve()
    passed = all(folder.stat().st_mode & stat.S_IXOTH for folder in file.parents)
    return passed and bool(file.stat().st_mode & stat.S_IROTH)
