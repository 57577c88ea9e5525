"""The results file of a campaign: a header, then a line for every finished cell.

Lines are only ever added, each in one write, so that whatever ends the program leaves all finished
cells behind and at most one half-written line, which the next run cuts off. The header says which
campaign the lines belong to; a file of another one is refused, never added to.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from penstock.campaign.machine_load import MachineLoad
from penstock.errors import InputError
from penstock.files import claim

Value = str | int | float | None
Row = Mapping[str, Value]
CellId = tuple[str, float, int]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A finished cell: its rows, and how long it took."""

    cell: CellId
    seconds: float
    rows: list[dict[str, Value]]
    machine: MachineLoad | None = None
    """What others took of the machine meanwhile, where the cell measured time."""


class Journal:
    """The results file, open for adding to it; a context manager."""

    def __init__(self, path: Path, header: Mapping[str, Value]) -> None:
        self.path = path
        self.entries: dict[CellId, Entry] = {}
        self._header = dict(header)
        self._file = path.open("a+b")
        try:
            claim(self._file, path)
            self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, entry: Entry) -> None:
        """Keep a finished cell, whatever happens next."""
        with _in(self.path):
            self._write(msgspec.json.encode(entry))
        self.entries[entry.cell] = entry

    def finished(self, cells: Iterable[CellId]) -> list[Entry]:
        """Return the entries of those cells that are finished."""
        return [self.entries[cell] for cell in cells if cell in self.entries]

    def _write(self, line: bytes) -> None:
        self._file.write(line + b"\n")
        self._file.flush()

    def _read(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        header = msgspec.json.encode(self._header)
        whole, newline, _ = content.rpartition(b"\n")
        if not newline:
            if not header.startswith(content):
                raise self._foreign("it does not begin as a results file does")
            self._truncate(0)
            self._write(header)
            return
        first, *lines = whole.split(b"\n")
        self._check(first)
        size = len(first) + 1
        for number, line in enumerate(lines, start=2):
            try:
                entry = msgspec.json.decode(line, type=Entry)
            except msgspec.DecodeError as error:
                if number == len(lines) + 1:
                    break
                raise self._foreign(f"line {number} is no result: {error}") from None
            self.entries[entry.cell] = entry
            size += len(line) + 1
        if size != len(content):
            self._truncate(size)

    def _truncate(self, size: int) -> None:
        os.ftruncate(self._file.fileno(), size)

    def _check(self, line: bytes) -> None:
        try:
            header: Any = msgspec.json.decode(line)
        except msgspec.DecodeError:
            header = None
        if not isinstance(header, dict) or "study" not in header:
            raise self._foreign("it does not begin as a results file does")
        differ = [key for key in self._header if header.get(key) != self._header[key]]
        if differ:
            file_values = ", ".join(f"{key} {header.get(key)}" for key in differ)
            run_values = ", ".join(f"{key} {self._header[key]}" for key in differ)
            raise self._foreign(f"it has {file_values}, this run {run_values}")

    def _foreign(self, reason: str) -> InputError:
        return InputError(
            f"{self.path} belongs to another run ({reason}); choose another --out, or move it away"
        )


@contextmanager
def _in(path: Path) -> Iterator[None]:
    """Name the file in an error of the operating system (a full disk has none of its own)."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def rows_of(entries: Iterable[Entry]) -> list[Row]:
    """Return all rows in an order that does not depend on who finished first."""
    return [row for entry in sorted(entries, key=lambda e: e.cell) for row in entry.rows]
