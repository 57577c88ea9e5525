"""Samples from `penstock explore`: its runs.jsonl (docs/formats/pattern-files.md).

All processes ran on one host, which is one node; the number of I/O nodes, and an emulated file
system, are part of the source's name. Marked runs and reads do not count.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.learn.write_models.samples import Sample, from_runs
from penstock.model.write import Write


class _Header(msgspec.Struct, frozen=True):
    study: str
    emulated: str | None = None


class _Line(msgspec.Struct, frozen=True):
    cell: tuple[str, float, int]
    rows: list[dict[str, Any]]


class _Rank(msgspec.Struct, frozen=True):
    operation: str
    repetition: int
    pattern: int
    rank: int
    bytes: int
    seconds: float
    files: str = ""
    """"shared" or "individual"; older versions do not record it."""


def samples(content: str, name: str, *, machine: str) -> tuple[Sample, ...]:
    """Return the samples in the content of the runs.jsonl `name`."""
    first, *lines = content.splitlines() or [""]
    try:
        header = msgspec.json.decode(first, type=_Header)
    except msgspec.DecodeError as error:
        raise InputError(f"{name} is not a runs.jsonl: {reason(error)}") from error
    if header.study != "explore":
        raise InputError(f"{name} is of the study {header.study!r}; give one of 'penstock explore'")
    runs: list[tuple[str, Write, float]] = []
    for number, line in enumerate(lines, start=2):
        try:
            runs += _runs(msgspec.json.decode(line, type=_Line), header)
        except (msgspec.DecodeError, InputError) as error:
            if number == len(lines) + 1 and not content.endswith("\n"):
                break  # An interrupted run leaves half a line.
            raise InputError(f"{name}, line {number}: {reason(error)}") from error
    if not runs:
        raise InputError(f"{name} has no unmarked runs that wrote")
    return from_runs(machine, runs)


def _runs(line: _Line, header: _Header) -> Iterator[tuple[str, Write, float]]:
    summary, *rows = line.rows
    if summary.get("marked"):
        return
    through = f"{line.cell[1]:g} I/O nodes" if line.cell[1] else "direct"
    source = f"explorer, {through}"
    if header.emulated:
        source += f", emulated ({header.emulated})"
    ranks = [msgspec.convert(row, _Rank) for row in rows if "operation" in row]
    written: dict[tuple[int, int], list[_Rank]] = {}
    for rank in ranks:
        if rank.operation == "write":
            written.setdefault((rank.repetition, rank.pattern), []).append(rank)
    for group in written.values():
        yield source, _write(group), max(rank.seconds for rank in group)


def _write(ranks: Sequence[_Rank]) -> Write:
    if not ranks[0].files:
        raise InputError("it does not say whether ranks shared a file; measure again")
    sizes: Mapping[int, int] = {rank.rank: rank.bytes for rank in ranks}
    if min(sizes.values()) < 1 or min(rank.seconds for rank in ranks) <= 0:
        raise InputError("a rank wrote nothing, or in no time")
    return Write(
        nodes=1,
        cores=len(ranks),
        burst=sum(sizes.values()) / len(sizes),
        shared=ranks[0].files == "shared",
    )
