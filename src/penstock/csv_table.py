"""Tables in CSV files: refused with the line that is wrong, written whole or not at all."""

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
    """A kind of table, a line of it a `T`."""

    holds: str
    """What its lines are, for people: "observations"."""
    columns: Sequence[str]
    entry: Callable[[Mapping[str, Any]], T]
    """What a row is; any of ERRORS where it is none."""
    row: Callable[[T], Mapping[str, Any]]
    remedy: str
    """What to do about a file that is none, as a sentence's end."""
    most: int = 64 * 2**20
    """Bytes of a file: more is none."""

    def text(self, entries: Iterable[T]) -> str:
        """Return entries as CSV."""
        out = io.StringIO()
        table = csv.DictWriter(out, self.columns, lineterminator="\n")
        table.writeheader()
        table.writerows(self.row(entry) for entry in entries)
        return out.getvalue()

    def write(self, path: Path, entries: Iterable[T]) -> None:
        """Write a file, whole or not at all."""
        with replacing(path) as partial:
            partial.write_text(self.text(entries), encoding="utf-8")

    def read(self, path: Path) -> tuple[T, ...]:
        """Return the entries of a file."""
        try:
            if path.stat().st_size > self.most:
                raise InputError(f"{path} is larger than any file of {self.holds}; give another")
            return self.parse(path.read_text(encoding="utf-8-sig"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read: {reason(error)}") from error

    def parse(self, content: str, name: str) -> tuple[T, ...]:
        """Return the entries in the text of a file of that name."""
        table = csv.DictReader(io.StringIO(content))
        try:
            missing = [column for column in self.columns if column not in (table.fieldnames or ())]
            found = () if missing else tuple(self.entry(_whole(row)) for row in table)
        except ERRORS as error:
            where = f"{name}, line {table.line_num}"
            raise InputError(f"{where}: {reason(error)}; {self.remedy}") from error
        if missing:
            other = next((sign for sign in ";\t|" if sign in "".join(table.fieldnames or ())), "")
            apart = f" (are they apart by {other!r}? it has to be a comma)" if other else ""
            raise InputError(f"{name} has no column {missing[0]!r}{apart}; {self.remedy}")
        if not found:
            raise InputError(f"{name} has no {self.holds}; {self.remedy}")
        return found


def _whole(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row; ValueError for one that has more fields than the first line, or fewer."""
    # csv's DictReader puts fields under None, and None where there is no field.
    if None in row or None in row.values():
        raise InputError("it has not as many fields as the first line")
    return row


ERRORS = (msgspec.ValidationError, csv.Error, KeyError, TypeError, ValueError)
