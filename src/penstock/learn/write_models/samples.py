"""Samples: what identical runs of a write took (paper write-models, III-D).

One line of CSV each; docs/samples.md has the columns. `source` says where a sample is from, and
"simulated" where it was never measured.
"""

import csv
import io
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec

from penstock.errors import InputError
from penstock.files import reason, replacing
from penstock.learn.write_models.convergence import Convergence
from penstock.learn.write_models.machine import LARGEST
from penstock.model.write import Write

MOST = 256 * 2**20
"""Bytes of a file of samples: more is not one."""
SHORTEST = 5.0
"""Seconds: shorter writes hide in the page cache (paper, IV-A)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A write on a machine, and the seconds that each of its identical runs took."""

    machine: str
    source: str
    write: Write
    times: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """Return the mean, which is what models are made for."""
        return statistics.fmean(self.times)

    def converged(self, rule: Convergence | None = None) -> bool:
        """Say whether its runs are enough to know the mean."""
        return (rule or Convergence()).reached(self.times)


_WRITE = tuple(field.name for field in fields(Write))
COLUMNS = ("machine", "source", *_WRITE, "times")


def text(samples: Iterable[Sample]) -> str:
    """Return samples as CSV; what is None is empty, numbers of a list are apart by blanks."""
    out = io.StringIO()
    table = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    table.writeheader()
    for one in samples:
        told = {name: getattr(one.write, name) for name in _WRITE}
        told |= {"machine": one.machine, "source": one.source}
        told["shared"] = int(one.write.shared)
        told["placement"] = ranges(one.write.placement)
        told["times"] = " ".join(f"{t:.6g}" for t in one.times)
        table.writerow({name: "" if value is None else value for name, value in told.items()})
    return out.getvalue()


def write(path: Path, samples: Iterable[Sample]) -> None:
    """Write samples, whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(text(samples), encoding="utf-8")


def read(path: Path) -> tuple[Sample, ...]:
    """Return the samples of a file."""
    try:
        if path.stat().st_size > MOST:
            raise InputError(f"{path} is larger than any file of samples; give another")
        return parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from error


def parse(content: str, name: str) -> tuple[Sample, ...]:
    """Return the samples in the text of a file of that name."""
    table = csv.DictReader(io.StringIO(content))
    missing = [column for column in COLUMNS if column not in (table.fieldnames or ())]
    if missing:
        raise InputError(f"{name} has no column {missing[0]!r}; docs/samples.md has them all")
    found: list[Sample] = []
    try:
        found.extend(_sample(row) for row in table)
    except (msgspec.ValidationError, csv.Error, ValueError) as error:
        raise InputError(f"{name}, line {table.line_num}: {reason(error)}") from error
    if not found:
        raise InputError(f"{name} has no samples")
    return tuple(found)


def _sample(row: dict[str, Any]) -> Sample:
    told: dict[str, Any] = {name: row[name] or None for name in _WRITE}
    told["shared"] = row["shared"] in ("1", "true")
    told["placement"] = numbers(row["placement"])
    times = tuple(map(float, row["times"].split()))
    if not times or not all(0 < seconds < float("inf") for seconds in times):
        raise ValueError("times are not all above zero, or there are none")
    write = msgspec.convert(told, Write, strict=False)
    return Sample(machine=row["machine"], source=row["source"], write=write, times=times)


def ranges(numbers: Sequence[int]) -> str:
    """Return numbers as "0-63 128-191", which keeps a thousand compute nodes on a line."""
    words: list[str] = []
    first = last = -2
    for number in sorted(numbers):
        if number != last + 1:
            first = number
            words.append(f"{first}")
        else:
            words[-1] = f"{first}-{number}"
        last = number
    return " ".join(words)


def numbers(words: str) -> tuple[int, ...]:
    """Return the numbers of "0-63 128-191"."""
    found: list[int] = []
    for word in (words or "").split():
        first, _, last = word.partition("-")
        try:
            begin, end = int(first), int(last or first)
        except ValueError as error:
            raise InputError(f"{word[:40]!r} is no number and no range; give '0-63 128'") from error
        if not 0 <= begin <= end <= LARGEST:
            raise InputError(f"{word[:40]!r} is no range of nodes, 0 to {LARGEST:,}")
        found.extend(range(begin, end + 1))
    if len(set(found)) != len(found):
        raise InputError("a node is there twice; give each once")
    return tuple(found)
