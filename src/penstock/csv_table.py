"""Tables in CSV files: errors name the line, and files are written completely or not at all."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from penstock.errors import InputError
from penstock.files import reason, replacing

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Generic[T]):
    """A kind of table whose rows are `T`."""

    holds: str
    """What the rows are, for messages: "observations"."""
    columns: Sequence[str]
    entry: Callable[[Mapping[str, Any]], T]
    """Converts a row; raises one of ERRORS for a row that is invalid."""
    row: Callable[[T], Mapping[str, Any]]
    remedy: str
    """What to do about an invalid file, as the end of an error message."""
    optional: Sequence[str] = ()
    """Further columns, which a file may lack."""
    seldom: Sequence[str] = ()
    """The same, at the end, written only if an entry has something in them."""
    most: int = 64 * 2**20
    """Maximum file size in bytes."""

    def text(self, entries: Iterable[T]) -> str:
        """Return entries as CSV."""
        out, rows = io.StringIO(), [self.row(entry) for entry in entries]
        filled = [column for column in self.seldom if any(row[column] for row in rows)]
        columns, empty = [*self.columns, *self.optional, *filled], set(self.seldom) - set(filled)
        table = csv.DictWriter(out, columns, lineterminator="\n")
        table.writeheader()
        table.writerows({k: v for k, v in row.items() if k not in empty} for row in rows)
        return out.getvalue()

    def write(self, path: Path, entries: Iterable[T]) -> None:
        """Write a file, completely or not at all."""
        with replacing(path) as partial:
            partial.write_text(self.text(entries), encoding="utf-8")

    def read(self, path: Path) -> tuple[T, ...]:
        """Return the entries of a file."""
        try:
            if path.stat().st_size > self.most:
                raise InputError(f"{path} is too large for a file of {self.holds}; give another")
            return self.parse(path.read_text(encoding="utf-8-sig"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read: {reason(error)}") from error

    def parse(self, content: str, name: str) -> tuple[T, ...]:
        """Return the entries in the text of a file; `name` is for messages."""
        table = csv.DictReader(io.StringIO(content))
        try:
            missing = [column for column in self.columns if column not in (table.fieldnames or ())]
            entries = () if missing else tuple(self.entry(_whole(row)) for row in table)
        except ERRORS as error:
            where = f"{name}, line {table.line_num}"
            raise InputError(f"{where}: {reason(error)}; {self.remedy}") from error
        if missing:
            other = next((sign for sign in ";\t|" if sign in "".join(table.fieldnames or ())), "")
            hint = f" (the file seems to use {other!r} as separator; use commas)" if other else ""
            raise InputError(f"{name} has no column {missing[0]!r}{hint}; {self.remedy}")
        if not entries:
            raise InputError(f"{name} has no {self.holds}; {self.remedy}")
        return entries


def _whole(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row; raise InputError if it has another number of fields than the header."""
    # csv.DictReader puts surplus fields under the key None, and None for missing fields.
    if None in row or None in row.values():
        raise InputError("this row has a different number of fields than the header")
    return row


ERRORS = (msgspec.ValidationError, csv.Error, KeyError, TypeError, ValueError)
