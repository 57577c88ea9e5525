"""Samples of what `penstock explore` measured: its runs.jsonl (docs/formats/pattern-files.md).

All processes ran on one host, which is one node; the number of I/O nodes, and an emulated file
system, are part of the source's name. Runs that were marked do not count, nor do reads.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.learn.write_models.samples import Sample
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
    """"shared" or "individual"; runs of older versions do not say."""


def samples(content: str, name: str, *, machine: str) -> tuple[Sample, ...]:
    """Return the samples in a runs.jsonl of that name."""
    first, *lines = content.splitlines() or [""]
    try:
        header = msgspec.json.decode(first, type=_Header)
    except msgspec.DecodeError as error:
        raise InputError(f"{name} is no runs.jsonl: {reason(error)}") from error
    if header.study != "explore":
        raise InputError(f"{name} is of the study {header.study!r}; give one of 'penstock explore'")
    found: dict[tuple[str, Write], list[float]] = {}
    for number, line in enumerate(lines, start=2):
        try:
            for source, write, seconds in _runs(msgspec.json.decode(line, type=_Line), header):
                found.setdefault((source, write), []).append(seconds)
        except (msgspec.DecodeError, InputError) as error:
            if number == len(lines) + 1 and not content.endswith("\n"):
                break  # Half a line is what an interruption leaves.
            raise InputError(f"{name}, line {number}: {reason(error)}") from error
    if not found:
        raise InputError(f"{name} has no runs that wrote and count")
    return tuple(
        Sample(machine=machine, source=source, write=write, times=tuple(times))
        for (source, write), times in found.items()
    )


def _runs(line: _Line, header: _Header) -> Iterator[tuple[str, Write, float]]:
    own, *told = line.rows
    if own.get("marked"):
        return
    through = f"{line.cell[1]:g} I/O nodes" if line.cell[1] else "direct"
    source = f"explorer, {through}"
    if header.emulated:
        source += f", emulated ({header.emulated})"
    ranks = [msgspec.convert(row, _Rank) for row in told]
    written: dict[tuple[int, int], list[_Rank]] = {}
    for rank in ranks:
        if rank.operation == "write":
            written.setdefault((rank.repetition, rank.pattern), []).append(rank)
    for together in written.values():
        yield source, _write(together), max(rank.seconds for rank in together)


def _write(together: Sequence[_Rank]) -> Write:
    if not together[0].files:
        raise InputError("it does not say whether ranks shared a file; measure again")
    sizes: Mapping[int, int] = {rank.rank: rank.bytes for rank in together}
    if min(sizes.values()) < 1 or min(rank.seconds for rank in together) <= 0:
        raise InputError("a rank wrote nothing, or in no time")
    return Write(
        nodes=1,
        cores=len(together),
        burst=sum(sizes.values()) / len(sizes),
        shared=together[0].files == "shared",
    )
