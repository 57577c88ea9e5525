"""Pattern files: FORGE's JSON, with an additional name and number of processes per phase.

    {"phases": [{"name", "processes", "nodes", "repetitions", "patterns": [{"path", "operation",
      "number_of_files", "spatiality", "total_size", "request_size", "validation", "direct_io",
      "stone_wall"}]}]}

FORGE replays all phases of a file one after the other, and a later phase reads what an earlier one
wrote. So do we: the phases of a job are read as one. A phase with a key of our own begins a job.

Numbers may be strings. A file in FORGE's first format, one pattern without phases, is accepted: the
pattern is written, then read. docs/formats/pattern-files.md describes every field.
"""

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from penstock.errors import InputError, unknown
from penstock.files import reason

ALIGNMENT = 512
"""Bytes that sizes and offsets of O_DIRECT must be a multiple of, at least."""
DATA = frozenset({"write", "read"})
MAX_OPERATIONS = 1 << 16
"""Of a job whose phases are read as one."""
_Count = Annotated[int, Meta(ge=1, le=1 << 20)]
_Bytes = Annotated[int, Meta(ge=1, le=1 << 62)]


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """One operation that all ranks do together."""

    operation: Literal["open", "write", "read", "close"]
    path: str = "forge"
    number_of_files: Literal["individual", "shared"] = "individual"
    spatiality: Literal["contiguous", "strided"] = "contiguous"
    total_size: _Bytes = 1  # of all ranks
    request_size: _Bytes = 1
    validation: bool = False
    direct_io: bool = False
    stone_wall: Annotated[float, Meta(ge=0)] = 0.0  # seconds; 0: unlimited

    def requests(self, ranks: int) -> int:
        """Return the number of requests of each rank."""
        return max(self.total_size // (self.request_size * ranks), 1)

    def offset(self, request: int, rank: int, ranks: int) -> int:
        """Return where a rank's request begins in its file."""
        if self.number_of_files == "individual":
            return request * self.request_size
        if self.spatiality == "strided":
            return (request * ranks + rank) * self.request_size
        return (rank * self.requests(ranks) + request) * self.request_size

    def file(self, folder: str, rank: int) -> str:
        """Return a rank's file: FORGE's path is a prefix where each rank has its own."""
        name = f"{folder}/{Path(self.path).name}"
        return f"{name}.{rank:05d}" if self.number_of_files == "individual" else name


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one job: its patterns, one after the other, repeated."""

    patterns: Annotated[list[Pattern], Meta(min_length=1)]
    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,39}$")] = ""
    repetitions: _Count = 1
    processes: _Count | None = None
    nodes: _Count = 1


class Patterns(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern file."""

    phases: Annotated[list[Phase], Meta(min_length=1)]
    forwarders: Annotated[int, Meta(ge=0, le=64)] | None = None
    dispatchers: _Count | None = None


_TOP = {"phases", "forwarders", "dispatchers"}
_WITHOUT_EFFECT = {"handlers", "listeners"}
"""Keys of FORGE that set its threads: an I/O node has as many as it needs."""
_BEGIN_A_JOB = {"name", "processes", "nodes"}


def read(path: Path) -> tuple[Patterns, list[str]]:
    """Read a pattern file; return its patterns, one phase per job, and the keys without effect."""
    try:
        data = path.read_bytes()
        content = msgspec.json.decode(data)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {reason(error)}{_line(data, error)}") from error
    try:
        ignored: list[str] = []
        return _parse(content, ignored, path.stem), ignored
    except msgspec.ValidationError as error:
        fault, _, place = str(error).removesuffix("`").partition(" - at `$.")
        raise InputError(f"{path}: {place}: {fault}" if place else f"{path}: {fault}") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _line(data: bytes, error: Exception) -> str:
    byte = re.search(r"\(byte (\d+)\)", str(error))
    return "" if byte is None else f", line {data.count(10, 0, int(byte[1])) + 1}"


def _parse(content: Any, ignored: list[str], stem: str) -> Patterns:
    if not isinstance(content, dict):
        raise InputError("a pattern file is a JSON object with phases")
    if "phases" not in content:
        content = _flat(content)
    _check_keys(content, _TOP, "", ignored)
    for place, table in _tables(content["phases"], "phases"):
        _check_keys(table, Phase.__struct_fields__, f"{place}.", ignored)
        for inner, keys in _tables(table.get("patterns"), f"{place}.patterns"):
            _check_keys(keys, Pattern.__struct_fields__, f"{inner}.", ignored)
    parsed = msgspec.convert(content, Patterns, strict=False)
    tables = content["phases"]
    for k, (phase, table) in enumerate(zip(parsed.phases, tables, strict=True)):
        for j, (pattern, keys) in enumerate(zip(phase.patterns, table["patterns"], strict=True)):
            if pattern.operation in DATA:
                _check(pattern, keys, f"phases[{k}].patterns[{j}]")
    begins = [k for k, table in enumerate(tables) if k == 0 or _BEGIN_A_JOB & table.keys()]
    jobs = []
    for begin, end in itertools.pairwise([*begins, len(tables)]):
        name = f"phase-{begin + 1}" if len(begins) > 1 else _name_of_file(stem)
        jobs.append(_join(parsed.phases[begin:end], name))
    if len({job.name for job in jobs}) < len(jobs):
        raise InputError("two jobs have one name; give each its own")
    return msgspec.structs.replace(parsed, phases=jobs)


def _tables(values: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the objects in what should be a list of them, each with its place in the file."""
    for k, value in enumerate(values if isinstance(values, list) else []):
        if isinstance(value, dict):
            yield f"{place}[{k}]", value


def _join(phases: Sequence[Phase], default_name: str) -> Phase:
    """Return the phases of a job as one; each is repeated before the next begins."""
    first = phases[0]
    name = first.name or default_name
    if len(phases) == 1:
        job = msgspec.structs.replace(first, name=name)
    else:
        operations = sum(phase.repetitions * len(phase.patterns) for phase in phases)
        if operations > MAX_OPERATIONS:
            raise InputError(
                f"job {name!r} has {operations} operations with all repetitions; "
                f"give at most {MAX_OPERATIONS}"
            )
        patterns = [one for phase in phases for one in phase.repetitions * phase.patterns]
        job = msgspec.structs.replace(first, name=name, patterns=patterns, repetitions=1)
    _check_job(job)
    return job


def _name_of_file(stem: str) -> str:
    """Return the name of a file's only job, as far as it can be one."""
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", stem).lstrip("_.+-")[:40] or "patterns"


def _flat(content: dict[str, Any]) -> dict[str, Any]:
    """Convert FORGE's first format to a phase."""
    own = {k: v for k, v in content.items() if k in _TOP | _WITHOUT_EFFECT}
    phase = {k: v for k, v in content.items() if k in _BEGIN_A_JOB}
    pattern = {k: v for k, v in content.items() if k not in {*own, *phase}}
    if "request_size" not in pattern:
        raise InputError(
            "there are neither phases nor a request_size; see docs/formats/pattern-files.md"
        )
    operations = [pattern.pop("operation")] if "operation" in pattern else ["write", "read"]
    phase["patterns"] = [pattern | {"operation": operation} for operation in operations]
    return {**own, "phases": [phase]}


def _check_keys(
    table: dict[str, Any], names: Iterable[str], prefix: str, ignored: list[str]
) -> None:
    """Refuse misspelt keys; ignore others, which belong to other versions of FORGE."""
    for key in table:
        if key not in names:
            known = key in _WITHOUT_EFFECT
            if not known and difflib.get_close_matches(key, names, n=1, cutoff=0.75):
                raise unknown("key", prefix + key, [prefix + name for name in names])
            ignored.append(prefix + key)


def _check(pattern: Pattern, table: dict[str, Any], place: str) -> None:
    for key in ("total_size", "request_size"):
        if key not in table:
            raise InputError(f"{place} has no {key}; say how many bytes it moves")
    if pattern.number_of_files == "individual" and pattern.spatiality == "strided":
        raise InputError(
            f"{place}.spatiality: an individual file cannot be strided; give shared, or contiguous"
        )
    if pattern.total_size < pattern.request_size:
        raise InputError(
            f"{place}.total_size: {pattern.total_size} is less than one request_size, "
            f"{pattern.request_size}"
        )
    if pattern.direct_io and pattern.request_size % ALIGNMENT:
        raise InputError(f"{place}.request_size: direct_io needs a multiple of {ALIGNMENT} bytes")


def _check_job(job: Phase) -> None:
    if not any(pattern.operation in DATA for pattern in job.patterns):
        raise InputError(f"job {job.name!r} neither writes nor reads: there is nothing to measure")
    # What a request writes depends on its size: other sizes cannot be compared with it.
    written: dict[str, int] = {}
    for pattern in job.patterns:
        file = pattern.file("", 0)
        size = written.get(file, pattern.request_size)
        if pattern.operation == "write":
            written[file] = pattern.request_size
        elif pattern.operation == "read" and pattern.validation and size != pattern.request_size:
            raise InputError(
                f"job {job.name!r}: {pattern.path!r} was written with a request_size of {size}; "
                f"validation needs the same, not {pattern.request_size}"
            )
