"""Samples: the times of identical runs of a write (paper write-models, III-D).

One CSV row per sample; docs/formats/samples.md has the columns. `source` says where a sample comes
from; "simulated" marks one that was never measured.
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
from penstock.learn.convergence import Convergence
from penstock.learn.write_models import parameters
from penstock.learn.write_models.machine import LARGEST, Machine
from penstock.model.write import Write

SHORTEST = 5.0
"""Seconds: shorter writes hide in the page cache (paper, IV-A)."""
SIMULATED = "simulated"
"""The `source` of samples that were never measured."""
LEAST_SECONDS, MOST_SECONDS = 1e-9, 1e9
"""Limits of a run; anything outside is a mistake in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A write on a machine, and the seconds of each of its identical runs."""

    machine: str
    source: str
    write: Write
    times: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """Return the mean time, which models predict."""
        return statistics.fmean(self.times)

    def converged(self, rule: Convergence | None = None) -> bool:
        """Return True if the runs are enough to know the mean."""
        return (rule or Convergence()).reached(self.times)


_WRITE = tuple(field.name for field in fields(Write))
COLUMNS = ("machine", "source", *_WRITE, "times")


def _row(sample: Sample) -> dict[str, Any]:
    """Return a sample's CSV row: None is empty, the numbers of a list are separated by blanks."""
    row = {name: getattr(sample.write, name) for name in _WRITE}
    row |= {"machine": sample.machine, "source": sample.source}
    row["shared"] = int(sample.write.shared)
    row["placement"] = format_ranges(sample.write.placement)
    row["times"] = " ".join(f"{t:.6g}" for t in sample.times)
    return {name: "" if value is None else value for name, value in row.items()}


def _sample(row: Mapping[str, Any]) -> Sample:
    fields: dict[str, Any] = {name: row[name] or None for name in _WRITE}
    fields["shared"] = _flag(row["shared"])
    fields["placement"] = parse_ranges(row["placement"])
    times = tuple(_number(word, "seconds") for word in row["times"].split())
    if not times or not all(LEAST_SECONDS <= seconds <= MOST_SECONDS for seconds in times):
        raise InputError(f"times must be {LEAST_SECONDS:g} to {MOST_SECONDS:g} s, one or more")
    write = msgspec.convert(fields, Write, strict=False)
    if min(write.nodes, write.cores) < 1 or not 1 <= write.burst < math.inf:
        raise InputError("nodes, cores and burst must be one or more")
    return Sample(machine=row["machine"], source=row["source"], write=write, times=times)


def _flag(word: str) -> bool:
    values = {"0": False, "false": False, "1": True, "true": True}
    if word.strip().lower() not in values:
        raise InputError(f"shared is {word[:40]!r}; give 1 (one file for all) or 0 (a file each)")
    return values[word.strip().lower()]


def _number(word: str, unit: str) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise InputError(f"{word[:40]!r} is not a number of {unit}") from error


def from_runs(machine: str, runs: Iterable[tuple[str, Write, float]]) -> tuple[Sample, ...]:
    """Return the samples of runs, each with its source, its write and its seconds."""
    return tuple(
        merge(
            Sample(machine=machine, source=source, write=write, times=(seconds,))
            for source, write, seconds in runs
        )
    )


def merge(samples: Iterable[Sample]) -> list[Sample]:
    """Join the runs of the same write from the same source into one sample."""
    times: dict[tuple[str, str, Write], list[float]] = {}
    for one in samples:
        times.setdefault((one.machine, one.source, one.write), []).extend(one.times)
    return [
        Sample(machine=machine, source=source, write=write, times=tuple(runs))
        for (machine, source, write), runs in times.items()
    ]


def format_ranges(numbers: Sequence[int]) -> str:
    """Return numbers as "0-63 128-191", which keeps a thousand compute nodes on one line."""
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


def parse_ranges(words: str) -> tuple[int, ...]:
    """Return the numbers of "0-63 128-191"."""
    result: list[int] = []
    for word in (words or "").split():
        first, _, last = word.partition("-")
        try:
            begin, end = int(first), int(last or first)
        except ValueError as error:
            raise InputError(
                f"{word[:40]!r} is neither a number nor a range; give '0-63 128'"
            ) from error
        if not 0 <= begin <= end <= LARGEST:
            raise InputError(f"{word[:40]!r} is not a range of nodes, 0 to {LARGEST:,}")
        result.extend(range(begin, end + 1))
    if len(set(result)) != len(result):
        raise InputError("a node is listed twice; list each once")
    return tuple(result)


TABLE = Table(
    holds="samples",
    columns=COLUMNS,
    entry=_sample,
    row=_row,
    remedy="docs/formats/samples.md has the format",
    most=256 * 2**20,
)
read, write, text, parse = TABLE.read, TABLE.write, TABLE.text, TABLE.parse


def check(sample: Sample, machine: Machine) -> None:
    """Raise InputError for a sample of another machine, or of a write that it cannot do."""
    if sample.machine != machine.name:
        raise InputError(
            f"a sample is of {sample.machine!r}, and the machine is {machine.name!r}; "
            "a model describes one machine"
        )
    parameters.check(machine, sample.write)


def read_for(machine: Machine, path: Path) -> tuple[Sample, ...]:
    """Read a file; InputError, with the line, for a sample that is not of this machine."""

    def entry(row: Mapping[str, Any]) -> Sample:
        sample = _sample(row)
        check(sample, machine)
        return sample

    return replace(TABLE, entry=entry).read(path)
