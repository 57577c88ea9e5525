"""Pattern files: FORGE's JSON, with an additional name and number of processes per phase.

    {"phases": [{"name", "processes", "nodes", "repetitions", "patterns": [{"path", "operation",
      "number_of_files", "spatiality", "total_size", "request_size", "validation", "direct_io",
      "stone_wall"}]}]}

Numbers may be strings. A file in FORGE's first format, one pattern without phases, is accepted: the
pattern is written, then read. docs/formats/pattern-files.md describes every field.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from penstock.errors import InputError, unknown
from penstock.files import reason

ALIGNMENT = 512
"""Bytes that sizes and offsets of O_DIRECT must be a multiple of, at least."""
DATA = frozenset({"write", "read"})
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


_TOP = {"phases", "forwarders", "dispatchers", "handlers", "listeners"}


def read(path: Path) -> tuple[Patterns, list[str]]:
    """Read a pattern file; return its patterns, and the keys that have no effect."""
    try:
        content = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {reason(error)}") from error
    try:
        ignored: list[str] = []
        patterns = _parse(content, ignored)
        for phase in patterns.phases:
            _check(phase)
    except (InputError, msgspec.ValidationError) as error:
        raise InputError(f"{path}: {error}") from error
    return patterns, ignored


def _parse(content: Any, ignored: list[str]) -> Patterns:
    if not isinstance(content, dict):
        raise InputError("a pattern file is a JSON object with phases")
    if "phases" not in content:
        content = _flat(content)
    _check_keys(content, _TOP, "", ignored)
    phases = content["phases"]
    for k, phase in enumerate(phases if isinstance(phases, list) else []):
        if not isinstance(phase, dict):
            continue
        _check_keys(phase, Phase.__struct_fields__, f"phases[{k}].", ignored)
        phase.setdefault("name", f"phase-{k + 1}")
        for j, pattern in enumerate(phase.get("patterns") or []):
            if isinstance(pattern, dict):
                fields = Pattern.__struct_fields__
                _check_keys(pattern, fields, f"phases[{k}].patterns[{j}].", ignored)
    patterns = msgspec.convert(content, Patterns, strict=False)
    names = [phase.name for phase in patterns.phases]
    if len(set(names)) < len(names):
        raise InputError("two phases have one name; give each its own")
    return patterns


def _flat(content: dict[str, Any]) -> dict[str, Any]:
    """Convert FORGE's first format to a phase."""
    own = {k: v for k, v in content.items() if k in _TOP}
    phase = {k: v for k, v in content.items() if k in {"name", "processes", "nodes"}}
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
    """Refuse misspelt keys; ignore others, which belong to later versions of FORGE."""
    for key in table:
        if key not in names:
            if difflib.get_close_matches(key, names, n=1, cutoff=0.75):
                raise unknown("key", prefix + key, [prefix + name for name in names])
            ignored.append(prefix + key)


def _check(phase: Phase) -> None:
    if not any(pattern.operation in DATA for pattern in phase.patterns):
        raise InputError(
            f"phase {phase.name!r} neither writes nor reads: there is nothing to measure"
        )
    for pattern in phase.patterns:
        if pattern.operation not in DATA:
            continue
        if pattern.number_of_files == "individual" and pattern.spatiality == "strided":
            raise InputError(
                f"phase {phase.name!r}: an individual file cannot be strided; "
                "give shared, or contiguous"
            )
        if pattern.total_size < pattern.request_size:
            raise InputError(f"phase {phase.name!r}: total_size is less than one request_size")
        if pattern.direct_io and pattern.request_size % ALIGNMENT:
            raise InputError(
                f"phase {phase.name!r}: direct_io needs a request_size that is "
                f"a multiple of {ALIGNMENT} bytes"
            )
