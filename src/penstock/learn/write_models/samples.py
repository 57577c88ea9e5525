"""Samples: what identical runs of a write took (paper write-models, III-D).

One line of CSV each; docs/samples.md has the columns. `source` says where a sample is from, and
"simulated" where it was never measured.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import msgspec

from penstock.errors import InputError
from penstock.learn.write_models.convergence import Convergence
from penstock.learn.write_models.machine import LARGEST
from penstock.model.write import Write
from penstock.tables import Table

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


def _row(one: Sample) -> dict[str, Any]:
    """Return it as it is written: what is None is empty, numbers of a list are apart by blanks."""
    told = {name: getattr(one.write, name) for name in _WRITE}
    told |= {"machine": one.machine, "source": one.source}
    told["shared"] = int(one.write.shared)
    told["placement"] = ranges(one.write.placement)
    told["times"] = " ".join(f"{t:.6g}" for t in one.times)
    return {name: "" if value is None else value for name, value in told.items()}


def _sample(row: Mapping[str, Any]) -> Sample:
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


TABLE = Table(
    holds="samples",
    columns=COLUMNS,
    entry=_sample,
    row=_row,
    remedy="docs/samples.md has the format",
    most=256 * 2**20,
)
read, write, text, parse = TABLE.read, TABLE.write, TABLE.text, TABLE.parse
