"""Records, read back one line at a time.

A controller that was killed may leave a last line behind that breaks off: that one is passed over,
with a note. Anything else that is wrong is an InputError with the file and the line.
"""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.records import lines
from penstock.records.header import FORMAT, VERSION, Header
from penstock.records.lines import Entry

LONGEST_LINE = 1 << 24
"""Bytes: a longer line is no line of a record, and is not read into memory to find out."""
SUFFIXES = (".jsonl", ".jsonl.gz")


class _Start(msgspec.Struct, frozen=True, kw_only=True):
    format: str = ""
    version: int = 0
    penstock: str = "?"


class Record:
    """The record of one run: one part of it, or several that follow each other.

    Iterating opens the files anew each time; `notes` then says what was passed over.
    """

    def __init__(self, first: Path | str, *more: Path | str) -> None:
        self.paths = [Path(first), *map(Path, more)]
        self.headers = [_header(path) for path in self.paths]
        self.notes: list[str] = []
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
        """Return this record with the parts before it, which must lie beside it."""
        earlier = [
            _sibling(self.paths[0], self.header.run, part) for part in range(1, self.header.part)
        ]
        return Record(*earlier, *self.paths)

    def __iter__(self) -> Iterator[Entry]:
        self.notes = []
        last = 0.0
        for path in self.paths:
            for entry in self._entries(path):
                if entry.event.time < last:
                    raise InputError(f"{entry.where}: time goes back, from {last!r} s")
                last = entry.event.time
                yield entry

    def _entries(self, path: Path) -> Iterator[Entry]:
        with _reading(path) as file:
            file.readline()
            number = 1
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
                yield replace(entry, where=where)

    def _line(self, file: IO[bytes], path: Path, number: int) -> bytes:
        try:
            text = file.readline(LONGEST_LINE)
        except (EOFError, zlib.error):
            self.notes.append(f"{path}, line {number}: the compressed file breaks off here")
            return b""
        if len(text) == LONGEST_LINE:
            raise InputError(f"{path}, line {number} has no end; it is no line of a record")
        return text


def _header(path: Path) -> Header:
    with _reading(path) as file:
        try:
            text = file.readline(LONGEST_LINE)
        except (EOFError, zlib.error):
            text = b""
    wrong = "is no header of a record, as 'penstock up' writes them"
    try:
        start = msgspec.json.decode(text, type=_Start)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}, line 1 {wrong}") from error
    if start.format != FORMAT:
        raise InputError(f"{path}, line 1 {wrong}")
    if start.version > VERSION:
        raise InputError(
            f"{path} has version {start.version} of the format, by Penstock {start.penstock}; this "
            f"one reads up to {VERSION}: take a newer Penstock"
        )
    try:
        return msgspec.json.decode(text, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}, line 1: {' '.join(str(error).split())}") from error


def _sibling(path: Path, run: str, part: int) -> Path:
    found: Sequence[Path] = sorted(
        other for suffix in SUFFIXES for other in path.parent.glob(f"*-{run}-{part:04}{suffix}")
    )
    if not found:
        raise InputError(
            f"{path} goes on from part {part} of its run, {run}, which is not beside it; "
            "put the earlier parts there"
        )
    return found[0]


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    """Open a file, compressed or not, and put its name in front of what goes wrong."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; check the name") from error
    except (OSError, EOFError) as error:
        raise InputError(f"{path} cannot be read: {reason(error).lower()}") from error
