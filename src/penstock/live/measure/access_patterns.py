"""Access patterns to replay: FORGE's JSON as it is, with a name and a number of processes of ours.

    {"phases": [{"name", "processes", "nodes", "repetitions", "patterns": [{"path", "operation",
      "number_of_files", "spatiality", "total_size", "request_size", "validation", "direct_io",
      "stone_wall"}]}]}

Numbers may be strings. FORGE's first format, one pattern without phases, is read too: it is
written, then read. docs/formats/pattern-files.md has it field by field.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from penstock.errors import InputError, unknown
from penstock.files import reason

ALIGNED = 512
"""What O_DIRECT wants sizes and offsets to be a multiple of, at least."""
DATA = frozenset({"write", "read"})
_Count = Annotated[int, Meta(ge=1, le=1 << 20)]
_Bytes = Annotated[int, Meta(ge=1, le=1 << 62)]


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """One operation that all ranks do, together."""

    operation: Literal["open", "write", "read", "close"]
    path: str = "forge"
    number_of_files: Literal["individual", "shared"] = "individual"
    spatiality: Literal["contiguous", "strided"] = "contiguous"
    total_size: _Bytes = 1  # of all ranks
    request_size: _Bytes = 1
    validation: bool = False
    direct_io: bool = False
    stone_wall: Annotated[float, Meta(ge=0)] = 0.0  # seconds; 0: none

    def requests(self, ranks: int) -> int:
        """Return how many requests each rank does."""
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
    """What one job does: its patterns, one after the other, so many times."""

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
    """Return what a pattern file says, and the keys in it that nothing is done with."""
    try:
        content = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is no JSON: {reason(error)}") from error
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
    _look(content, _TOP, "", ignored)
    phases = content["phases"]
    for k, phase in enumerate(phases if isinstance(phases, list) else []):
        if not isinstance(phase, dict):
            continue
        _look(phase, Phase.__struct_fields__, f"phases[{k}].", ignored)
        phase.setdefault("name", f"phase-{k + 1}")
        for j, pattern in enumerate(phase.get("patterns") or []):
            if isinstance(pattern, dict):
                fields = Pattern.__struct_fields__
                _look(pattern, fields, f"phases[{k}].patterns[{j}].", ignored)
    patterns = msgspec.convert(content, Patterns, strict=False)
    names = [phase.name for phase in patterns.phases]
    if len(set(names)) < len(names):
        raise InputError("two phases have one name; give each its own")
    return patterns


def _flat(content: dict[str, Any]) -> dict[str, Any]:
    """Return FORGE's first format as a phase."""
    own = {k: v for k, v in content.items() if k in _TOP}
    phase = {k: v for k, v in content.items() if k in {"name", "processes", "nodes"}}
    pattern = {k: v for k, v in content.items() if k not in {*own, *phase}}
    if "request_size" not in pattern:
        raise InputError(
            "neither phases nor a pattern's request_size; see docs/formats/pattern-files.md"
        )
    wanted = [pattern.pop("operation")] if "operation" in pattern else ["write", "read"]
    phase["patterns"] = [pattern | {"operation": operation} for operation in wanted]
    return {**own, "phases": [phase]}


def _look(given: dict[str, Any], known: Iterable[str], where: str, ignored: list[str]) -> None:
    """Refuse keys that are slips of known ones; others are of FORGE's later versions."""
    for key in given:
        if key not in known:
            if difflib.get_close_matches(key, known, n=1, cutoff=0.75):
                raise unknown("key", where + key, [where + name for name in known])
            ignored.append(where + key)


def _check(phase: Phase) -> None:
    if not any(pattern.operation in DATA for pattern in phase.patterns):
        raise InputError(f"phase {phase.name!r} neither writes nor reads; nothing to measure")
    for pattern in phase.patterns:
        if pattern.operation not in DATA:
            continue
        if pattern.number_of_files == "individual" and pattern.spatiality == "strided":
            raise InputError(
                f"phase {phase.name!r}: a file of its own is not strided; share it, or contiguous"
            )
        if pattern.total_size < pattern.request_size:
            raise InputError(f"phase {phase.name!r}: total_size is less than one request_size")
        if pattern.direct_io and pattern.request_size % ALIGNED:
            raise InputError(
                f"phase {phase.name!r}: direct_io wants a request_size of whole {ALIGNED} bytes"
            )
