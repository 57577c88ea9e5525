"""The exits of jobs that ended while no controller could receive them, one file per job.

The agent writes the file: in a folder of the controller's state directory on the same host, else in
a folder of its own, from which it delivers the exits once the controller is back. The owner of a
file counts as its sender, like the user at the other end of a connection.
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
from penstock.live.protocol.client import MAX_LINE_BYTES, ControlConnection

MAX_FILES_PER_ROUND = 1000
"""Files read in one round: a restart must not wait for more."""
MAX_FILES = 10_000
"""Files in one folder; an agent writes no more."""
_SUFFIX = ".json"
log = logging.getLogger("penstock.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolFile:
    """A file of the spool; the text is empty unless it is a regular file."""

    path: Path
    uid: int
    text: bytes

    def remove(self) -> bool:
        """Remove the file; log a failure and return False."""
        try:
            try:
                self.path.unlink(missing_ok=True)
            except IsADirectoryError:
                self.path.rmdir()
        except OSError as error:
            log.warning("unreported exit %s cannot be removed: %s", self.path.name, reason(error))
            return False
        return True


class ExitSpool:
    """A folder of unreported exits; its permissions say who may write there."""

    def __init__(
        self,
        folder: Path,
        *,
        max_files: int = MAX_FILES,
        max_files_per_round: int = MAX_FILES_PER_ROUND,
    ) -> None:
        self.folder = folder
        self._max_files = max_files
        self._max_files_per_round = max_files_per_round

    def create(self) -> None:
        """Create the folder unless it exists."""
        self.folder.mkdir(mode=0o700, exist_ok=True)

    def write(self, exit_report: messages.UnreportedExit) -> None:
        """Write an exit, completely or not at all; raise OSError if that is impossible."""
        self.create()
        # The folder may belong to an attacker: follow no link.
        folder = os.open(self.folder, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if sum(1 for _ in self.folder.iterdir()) >= self._max_files:
                raise OSError(f"{self.folder} has {self._max_files} unreported exits already")
            name = f"{exit_report.job}.{os.getpid()}"
            _write(folder, f".{name}", msgspec.json.encode(exit_report))
            os.replace(f".{name}", name + _SUFFIX, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(folder)

    def files(self, but: Collection[str] = ()) -> Iterator[SpoolFile]:
        """Yield the files `but` for these names, at most as many as one round takes."""
        with suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            names = [e.name for e in entries if e.name.endswith(_SUFFIX) and e.name not in but]
            for name in names[: self._max_files_per_round]:
                with suppress(OSError):
                    yield _read(self.folder / name)

    def deliver(self, connect: Callable[[], ControlConnection]) -> int:
        """Send the exits to the controller, remove them, and return how many it accepted.

        Raises OSError if the controller is not there.
        """
        accepted = 0
        files = list(self.files())
        if not files:
            return accepted
        with connect() as controller:
            for file in files:
                try:
                    exit_report = messages.decode(file.text, messages.UnreportedExit)
                    controller.ask(exit_report, messages.Done)
                    accepted += 1
                except (msgspec.DecodeError, InputError) as error:
                    log.warning("unreported exit %s is dropped: %s", file.path.name, reason(error))
                file.remove()
        return accepted


def _write(folder: int, name: str, text: bytes) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)  # left by a killed process that had our process id
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o644)  # an agent may be root's, and the controller another user's
        file.write(text)


def _read(path: Path) -> SpoolFile:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return SpoolFile(path=path, uid=status.st_uid, text=b"")
    # It may have been replaced meanwhile: follow no link, and do not wait for a pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file any more")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return SpoolFile(path=path, uid=status.st_uid, text=file.read(MAX_LINE_BYTES))
    finally:
        os.close(descriptor)
