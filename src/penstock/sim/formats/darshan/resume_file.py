"""Profiles of an interrupted command, so that the same command can resume.

One line per log, added when it was read; only the places of lines are in memory. A line is valid as
long as its log is unchanged, and only for the version of penstock that wrote it.
"""

from pathlib import Path
from typing import IO

import msgspec

from penstock import __version__
from penstock.errors import InputError
from penstock.files import claim
from penstock.learn.profiles import Profile

Key = tuple[str, str, int, int]
"""Version of penstock, the log's name, its size, and its modification time."""

BEGINS = b'{"key":['


class Line(msgspec.Struct, frozen=True):
    """A log and its profile."""

    key: Key
    profile: msgspec.Raw


class ResumeFile:
    """A file of profiles, open for appending; a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._places: dict[Key, tuple[int, int]] = {}
        self._file: IO[bytes] = path.open("a+b")
        try:
            claim(self._file, path)
            self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "ResumeFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if not self._places:
            self.drop()

    def __len__(self) -> int:
        return len(self._places)

    def get(self, log: Path) -> Profile | None:
        """Return the profile of a log, or None."""
        key = _key(log)
        if key is None or key not in self._places:
            return None
        place, length = self._places[key]
        self._file.seek(place)
        line = msgspec.json.decode(self._file.read(length), type=Line)
        return msgspec.json.decode(line.profile, type=Profile)

    def add(self, log: Path, profile: Profile) -> None:
        """Append a profile and flush it to the file."""
        key = _key(log)
        if key is None:
            return
        text = msgspec.json.encode(Line(key, msgspec.Raw(msgspec.json.encode(profile))))
        place = self._file.seek(0, 2)
        self._file.write(text + b"\n")
        self._file.flush()
        self._places[key] = (place, len(text))

    def drop(self) -> None:
        """Remove the file: its content is in the results."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> None:
        self._file.seek(0)
        place = 0
        for text in self._file:
            try:
                line = msgspec.json.decode(text, type=Line)
            except msgspec.DecodeError as error:
                if text.endswith(b"\n") or not text.startswith(BEGINS[: len(text)]):
                    raise InputError(
                        f"{self.path} is not a file of profiles of an interrupted run; move it away"
                    ) from error
                self._file.truncate(place)  # the line was being written
                return
            self._places[line.key] = (place, len(text))
            place += len(text)


def _key(log: Path) -> Key | None:
    try:
        status = log.stat()
    except OSError:
        return None
    return __version__, str(log), status.st_size, status.st_mtime_ns
