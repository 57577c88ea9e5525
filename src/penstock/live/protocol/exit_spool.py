"""Last words of jobs that ended while no controller heard them.

An agent that cannot tell its job's end leaves it as a file: in a folder of the controller's state
directory on the same host, else in one of its own, from where it is told when the controller is
back. A file counts as said by who owns it, as what comes on a connection does.
"""

import logging
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.live.protocol import messages
from penstock.live.protocol.client import LONGEST_LINE, Channel

AT_ONCE = 1000
"""Files that are taken in one round: a restart must not wait for more."""
MOST = 10_000
"""Files of one folder; an agent leaves no more."""
_SUFFIX = ".json"
log = logging.getLogger("penstock.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What somebody left; what is no plain file says nothing."""

    path: Path
    uid: int
    text: bytes

    def remove(self) -> bool:
        """Say whether it is gone now; what stays is told of in the log."""
        try:
            try:
                self.path.unlink(missing_ok=True)
            except IsADirectoryError:
                self.path.rmdir()
        except OSError as error:
            log.warning("last word %s cannot be removed: %s", self.path.name, reason(error))
            return False
        return True


class LastWords:
    """A folder of last words; who may write to it is for its place to say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self) -> None:
        """Make the folder unless it is there."""
        self.folder.mkdir(mode=0o700, exist_ok=True)

    def leave(self, word: messages.LastWord) -> None:
        """Keep a word, whole or not at all; OSError: it cannot be kept."""
        self.create()
        # The folder may be another's who would lead us astray: no link is followed.
        folder = os.open(self.folder, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if sum(1 for _ in self.folder.iterdir()) >= MOST:
                raise OSError(f"{self.folder} has {MOST} last words that nobody took")
            name = f"{word.job}.{os.getpid()}"
            _write(folder, f".{name}", msgspec.json.encode(word))
            os.replace(f".{name}", name + _SUFFIX, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(folder)

    def left(self, but: Collection[str] = ()) -> Iterator[Found]:
        """Yield what was left `but` for these names; no more than AT_ONCE."""
        with suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            names = [e.name for e in entries if e.name.endswith(_SUFFIX) and e.name not in but]
            for name in names[:AT_ONCE]:
                with suppress(OSError):
                    yield _read(self.folder / name)

    def tell(self, connect: Callable[[], Channel]) -> int:
        """Tell a controller what was left, and forget it; return how much that was.

        OSError: the controller is not there.
        """
        told = 0
        found = list(self.left())
        if not found:
            return told
        with connect() as controller:
            for each in found:
                try:
                    controller.ask(
                        msgspec.json.decode(each.text, type=messages.LastWord), messages.Done
                    )
                    told += 1
                except (msgspec.DecodeError, UnicodeDecodeError, InputError) as error:
                    log.warning("last word %s is given up: %s", each.path.name, reason(error))
                each.remove()
        return told


def _write(folder: int, name: str, text: bytes) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)  # of one that had our number and was killed
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o644)  # root's agents are read by a controller that is not root
        file.write(text)


def _read(path: Path) -> Found:
    about = path.lstat()
    if not stat.S_ISREG(about.st_mode):
        return Found(path=path, uid=about.st_uid, text=b"")
    # It may have become something else since: no link is followed, and no pipe waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(f"{path} is no plain file any more")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return Found(path=path, uid=about.st_uid, text=file.read(LONGEST_LINE))
    finally:
        os.close(descriptor)
