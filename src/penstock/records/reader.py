"""Reads records, one line at a time.

A controller that was killed may leave an incomplete last line: it is skipped, with a note. So are
events that earlier versions recorded and no decision depended on. Anything else that is wrong is
an InputError with file and line.

Events are numbered (from version 2 of the format on), so a reader knows how many are missing, and
where. It reads on: whether the rest can be used depends on what for.
"""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.printable import is_printable
from penstock.records import lines
from penstock.records.lines import FORMAT, VERSION, Entry, Header
from penstock.units import show_count

LONGEST_LINE = 1 << 24
"""Bytes; a file with a longer line is not a record, and is not read into memory to find out."""
SUFFIXES = (".jsonl", ".jsonl.gz")


class _Start(msgspec.Struct, frozen=True, kw_only=True):
    format: str = ""
    version: int = 0
    penstock: str = "?"


@dataclass(frozen=True, slots=True)
class Gap:
    """Events that are missing before a line of a record."""

    events: int
    where: str

    def __str__(self) -> str:
        verb = "is" if self.events == 1 else "are"
        return f"{self.where}: {show_count(self.events, 'event')} before it {verb} missing"


class Record:
    """The record of one run: one part of it, or consecutive parts.

    Each iteration reads the files again; afterwards `notes` says what was left out, and `gaps`
    what is missing. `longest_line` bounds the bytes of a line.
    """

    def __init__(
        self, first: Path | str, *more: Path | str, longest_line: int = LONGEST_LINE
    ) -> None:
        self._longest_line = longest_line
        self.paths = [Path(first), *map(Path, more)]
        self.headers = [_header(path, longest_line) for path in self.paths]
        self.notes: list[str] = []
        self.gaps: list[Gap] = []
        follows = zip(self.paths[1:], self.headers, self.headers[1:], strict=False)
        for path, before, after in follows:
            if (after.run, after.part) != (before.run, before.part + 1):
                raise InputError(
                    f"{path} is part {after.part} of run {after.run}, which does not follow part "
                    f"{before.part} of run {before.run}; give the parts of one run in order"
                )

    @property
    def header(self) -> Header:
        """The header of the first part."""
        return self.headers[0]

    @property
    def lost(self) -> int:
        """How many events are missing between the parts."""
        return sum(header.lost for header in self.headers[1:])

    def whole(self) -> "Record":
        """Return this record with the parts before it, which must be in the same folder."""
        earlier = [
            _sibling(self.paths[0], self.header.run, part) for part in range(1, self.header.part)
        ]
        return Record(*earlier, *self.paths)

    def __iter__(self) -> Iterator[Entry]:
        self.notes, self.gaps = [], []
        last, expected = 0.0, self.header.first
        for path, header in zip(self.paths, self.headers, strict=True):
            expected += header.lost if header is not self.header else 0
            for entry in self._entries(path):
                if entry.event.time < last:
                    raise InputError(f"{entry.where}: time goes back, from {last!r} s")
                last = entry.event.time
                expected = self._follow(entry, expected) if header.numbered else expected
                yield entry

    def _follow(self, entry: Entry, expected: int) -> int:
        """Note the events that are missing before this one; return the next number."""
        if entry.number is None or entry.number < expected:
            what = "no number" if entry.number is None else f"number {entry.number}"
            raise InputError(f"{entry.where} has {what}, not {expected}; is the file damaged?")
        if entry.number > expected:
            self.gaps.append(Gap(entry.number - expected, entry.where))
        return entry.number + 1

    def _entries(self, path: Path) -> Iterator[Entry]:
        with _reading(path) as file:
            file.readline()
            number, retired = 1, 0
            while text := self._line(file, path, number + 1):
                number += 1
                where = f"{path}, line {number}"
                try:
                    entry = lines.decode(text)
                except InputError as error:
                    if text.endswith(b"\n"):
                        raise InputError(f"{where}: {error}") from error
                    self.notes.append(f"{where} breaks off and is left out")
                    return
                if entry is None:
                    retired += 1
                    continue
                yield replace(entry, where=where)
        if retired:
            self.notes.append(f"{path}: {retired} events of an earlier version are left out")

    def _line(self, file: IO[bytes], path: Path, number: int) -> bytes:
        try:
            text = file.readline(self._longest_line)
        except (EOFError, zlib.error):
            self.notes.append(f"{path}, line {number}: the compressed file breaks off here")
            return b""
        if len(text) == self._longest_line:
            raise InputError(f"{path}, line {number} is too long; the file is not a record")
        return text


def _header(path: Path, longest_line: int) -> Header:
    with _reading(path) as file:
        try:
            text = file.readline(longest_line)
        except (EOFError, zlib.error):
            text = b""
    wrong = "is not the header of a record that 'penstock up' wrote"
    try:
        start = msgspec.json.decode(text, type=_Start)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}, line 1 {wrong}") from error
    if start.format != FORMAT:
        raise InputError(f"{path}, line 1 {wrong}")
    if start.version < 1:
        raise InputError(
            f"{path} has version {start.version} of the format, which does not exist; this version "
            f"reads 1 to {VERSION}: is the file damaged?"
        )
    if start.version > VERSION:
        raise InputError(
            f"{path} has version {start.version} of the format, by Penstock {start.penstock}; this "
            f"version reads up to {VERSION}: use a newer Penstock"
        )
    try:
        if not all(map(is_printable, _strings(msgspec.json.decode(text)))):
            raise InputError(f"{path}, line 1 has control characters in a name; is it damaged?")
        return msgspec.json.decode(text, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}, line 1: {' '.join(str(error).split())}") from error


def _strings(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _sibling(path: Path, run: str, part: int) -> Path:
    siblings: Sequence[Path] = sorted(
        other for suffix in SUFFIXES for other in path.parent.glob(f"*-{run}-{part:04}{suffix}")
    )
    if not siblings:
        raise InputError(
            f"{path} continues part {part} of run {run}, which is not in the same folder; "
            "put the earlier parts there"
        )
    return siblings[0]


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    """Open a file, compressed or not; errors name it."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; check the name") from error
    except (OSError, EOFError) as error:
        raise InputError(f"{path} cannot be read: {reason(error).lower()}") from error
