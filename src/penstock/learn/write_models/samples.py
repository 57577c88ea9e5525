"""Samples: what identical runs of a write took (paper write-models, III-D).

One line of CSV each; docs/formats/samples.md has the columns. `source` says where a sample is from,
and "simulated" where it was never measured.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import msgspec

from penstock.csv_table import Table
from penstock.errors import InputError
from penstock.learn.write_models import parameters
from penstock.learn.write_models.convergence import Convergence
from penstock.learn.write_models.machine import LARGEST, Machine
from penstock.model.write import Write

SHORTEST = 5.0
"""Seconds: shorter writes hide in the page cache (paper, IV-A)."""
SIMULATED = "simulated"
"""The source of samples that were never measured."""
LEAST_SECONDS, MOST_SECONDS = 1e-9, 1e9
"""Of a run: thirty years, and less than a nanosecond, are slips."""


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
    told["shared"] = _flag(row["shared"])
    told["placement"] = numbers(row["placement"])
    times = tuple(_number(word, "seconds") for word in row["times"].split())
    if not times or not all(LEAST_SECONDS <= seconds <= MOST_SECONDS for seconds in times):
        raise InputError(f"times are not all {LEAST_SECONDS:g} to {MOST_SECONDS:g} s, or none")
    write = msgspec.convert(told, Write, strict=False)
    if min(write.nodes, write.cores) < 1 or not 1 <= write.burst < math.inf:
        raise InputError("nodes, cores and burst are one or more")
    return Sample(machine=row["machine"], source=row["source"], write=write, times=times)


def _flag(word: str) -> bool:
    known = {"0": False, "false": False, "1": True, "true": True}
    if word.strip().lower() not in known:
        raise InputError(f"shared is {word[:40]!r}; give 1 (one file for all) or 0 (a file each)")
    return known[word.strip().lower()]


def _number(word: str, what: str) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise InputError(f"{word[:40]!r} is no number of {what}") from error


def merged(samples: Iterable[Sample]) -> list[Sample]:
    """Return samples of which runs of the same write, of the same source, are one."""
    together: dict[tuple[str, str, Write], Sample] = {}
    for one in samples:
        key = (one.machine, one.source, one.write)
        before = together.get(key)
        together[key] = replace(one, times=(*before.times, *one.times)) if before else one
    return list(together.values())


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
    remedy="docs/formats/samples.md has the format",
    most=256 * 2**20,
)
read, write, text, parse = TABLE.read, TABLE.write, TABLE.text, TABLE.parse


def check(one: Sample, machine: Machine) -> None:
    """Raise InputError for a sample of another machine, or of a write that it cannot do."""
    if one.machine != machine.name:
        raise InputError(
            f"a sample is of {one.machine!r}, and the machine is {machine.name!r}; "
            "a model is of one machine"
        )
    parameters.check(machine, one.write)


def read_of(path: Path, machine: Machine) -> tuple[Sample, ...]:
    """Return the samples of a file; InputError, with the line, for any that are not a machine's."""

    def entry(row: Mapping[str, Any]) -> Sample:
        one = _sample(row)
        check(one, machine)
        return one

    return replace(TABLE, entry=entry).read(path)
