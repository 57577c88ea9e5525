"""The storage target of every byte of a file: fixed stripes, Lustre layouts, BeeGFS patterns.

The sources are Lustre's extended attribute (`struct lov_user_md` and `lov_comp_md_v1` of its
`lustre_user.h`), and the output of `lfs getstripe`, `beegfs-ctl --getentryinfo` and
`beegfs entry info --retro`. I/O nodes use native/ionode/stripe_map.hpp.
"""

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from penstock.errors import InputError
from penstock.identities import TargetId

TOOL_TIMEOUT = 5.0
"""Seconds for a tool of a file system to answer."""
END_OF_FILE = 2**64 - 1

_PLAIN, _POOL, _COMPOSITE = 0x0BD10BD0, 0x0BD30BD0, 0x0BD60BD0
_STALE, _EXTENSION, _PARITY = 0x1, 0x40, 0x80
_LAYOUT = struct.Struct("<II16xIHH")
_LAYOUT_BYTES = {_PLAIN: _LAYOUT.size, _POOL: _LAYOUT.size + 16}
_OBJECT = struct.Struct("<16xII")
_COMPOSITE_HEAD = struct.Struct("<IIIHH16x")
_ENTRY = struct.Struct("<IIQQII16x")
_ALL = 0xFFFF
"""The stripe count that means all targets."""
_UNUSED = {"stale", "extension", "parity"}
_OST_INDEX = re.compile(r"l_ost_idx:\s*(\d+)")
_OST_ROW = re.compile(r"^\s+(\d+)\s+\d+\s+0x[0-9a-f]+\s+\S+\s*$", flags=re.MULTILINE)
_CHUNK = re.compile(r"(\d+)([kmg]?)(?:i?b)?")
_BEEGFS_TARGETS = re.compile(
    r"^\+ (?:Storage targets|.*[Bb]uddy groups):[ \t]*\n((?:[ \t]*\+ \d+.*\n?)+)", re.MULTILINE
)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a file, from `start` up to `end`, with one striping."""

    start: int
    end: int
    stripe_size: int
    targets: tuple[TargetId, ...]

    def __post_init__(self) -> None:
        """Refuse a component without stripes or targets."""
        if self.stripe_size <= 0 or not self.targets:
            raise InputError(
                f"a layout of {len(self.targets)} targets with stripes of {self.stripe_size} bytes;"
                " give at least one of each"
            )


@dataclass(frozen=True, slots=True)
class StripeMap:
    """The components of a file; of overlapping mirrors, the first one counts."""

    components: tuple[Component, ...]

    DEFAULT_SIZE: ClassVar[int] = 1 << 20

    @classmethod
    def fixed(cls, size: int = DEFAULT_SIZE, count: int = 1) -> "StripeMap":
        """Return the map of files that begin at target 0 and change targets every `size` bytes."""
        return cls((Component(0, END_OF_FILE, size, tuple(map(TargetId, range(count)))),))

    @classmethod
    def of_file(
        cls,
        path: Path,
        default: "StripeMap | None" = None,
        *,
        getxattr: Callable[[Path, str], bytes] = os.getxattr,
    ) -> "StripeMap":
        """Return the map of a file if its file system shows it, else the default."""
        for name in ("lustre.lov", "trusted.lov"):
            try:
                return cls.from_lustre(getxattr(path, name))
            except (OSError, InputError):
                continue
        for tool in (["beegfs-ctl", "--getentryinfo"], ["beegfs", "entry", "info", "--retro"]):
            if (output := _run(tool, path)) is not None:
                try:
                    return cls.from_beegfs(output)
                except InputError:
                    continue
        return default or cls.fixed()

    def server(self, offset: int) -> int:
        """Return the storage target of a byte; beyond the layout, its last component counts."""
        covering = (part for part in self.components if part.start <= offset < part.end)
        part = next(covering, self.components[-1])
        # Lustre counts stripes from the beginning of the file, also in later components.
        return part.targets[offset // part.stripe_size % len(part.targets)]

    @classmethod
    def from_lustre(cls, value: bytes) -> "StripeMap":
        """Parse the extended attribute `lustre.lov`."""
        cut = InputError(f"layout attribute of {len(value)} bytes is truncated; read all of it")
        try:
            if struct.unpack_from("<I", value)[0] != _COMPOSITE:
                return cls((_component(value, 0, END_OF_FILE),))
            components = []
            for k in range(_COMPOSITE_HEAD.unpack_from(value)[4]):
                entry = _ENTRY.unpack_from(value, _COMPOSITE_HEAD.size + k * _ENTRY.size)
                _, flags, start, end, offset, size = entry
                if offset + size > len(value):
                    raise cut
                if not flags & (_STALE | _EXTENSION | _PARITY):
                    components.append(_component(value[offset : offset + size], start, end))
        except struct.error:
            raise cut from None
        return cls._of_components(components, "the layout attribute")

    @classmethod
    def from_getstripe(cls, text: str) -> "StripeMap":
        """Parse the output of `lfs getstripe FILE`."""
        head, *parts = re.split(r"^(?=[ \t]*lcme_id:)", text, flags=re.MULTILINE)
        if not parts and head.count("stripe_count:") > 1:
            raise InputError("layouts of several files; give `lfs getstripe` one file")
        components = []
        for part in parts or [head]:
            if _UNUSED & set(_field(part, "lcme_flags", "none").split(",")):
                continue
            end = _field(part, r"lcme_extent\.e_end", "EOF")
            objects = _OST_INDEX.findall(part) or _OST_ROW.findall(part)
            components.append(
                Component(
                    _number(_field(part, r"lcme_extent\.e_start", "0")),
                    END_OF_FILE if end == "EOF" else _number(end),
                    _number(_field(part, "(?:lmm_)?stripe_size")),
                    _targets(objects, _number(_field(part, "(?:lmm_)?stripe_count"))),
                )
            )
        return cls._of_components(components, "the output of `lfs getstripe`")

    @classmethod
    def from_beegfs(cls, text: str) -> "StripeMap":
        """Parse the output of `beegfs-ctl --getentryinfo FILE`, or of its successor."""
        chunk = _CHUNK.fullmatch(_field(text, "Chunksize").lower())
        if chunk is None:
            raise InputError("BeeGFS's chunk size is not a size; give the output as it was printed")
        size = int(chunk[1]) * _UNITS[chunk[2]]
        listed = _BEEGFS_TARGETS.search(text)
        targets = re.findall(r"\+ (\d+)", listed[1]) if listed else []
        count = _number(_field(text, "Number of storage targets: desired").rstrip(";"))
        return cls((Component(0, END_OF_FILE, size, _targets(targets, count)),))

    @classmethod
    def _of_components(cls, components: Sequence[Component], where: str) -> "StripeMap":
        if not components:
            raise InputError(f"no component in {where} can be used; give the layout of a file")
        return cls(tuple(components))


def _component(layout: bytes, start: int, end: int) -> Component:
    magic, _, stripe_size, count, _ = _LAYOUT.unpack_from(layout)
    if magic not in _LAYOUT_BYTES:
        raise InputError(f"layout attribute begins with {magic:#x}, which is not a known layout")
    head = _LAYOUT_BYTES[magic]
    objects = []
    if len(layout) > head:  # a component has no objects before the first write
        objects = [_OBJECT.unpack_from(layout, head + k * _OBJECT.size)[1] for k in range(count)]
    return Component(start, end, stripe_size, _targets(objects, count))


def _targets(objects: Iterable[int | str], count: int) -> tuple[TargetId, ...]:
    """Return the targets, or `count` consecutive ones if the file system has chosen none yet."""
    targets = tuple(TargetId(int(target)) for target in objects)
    return targets or tuple(map(TargetId, range(count if 0 < count < _ALL else 1)))


def _field(text: str, name: str, default: str | None = None) -> str:
    match = re.search(rf"(?<!\w){name}:[ \t]*(\S+)", text)
    if match is None and default is None:
        plain_name = name.removeprefix("(?:lmm_)?")
        raise InputError(f"no {plain_name!r} in the layout; give the output as it was printed")
    return match[1] if match else default or ""


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{text!r} in the layout is not a number; give it as printed") from None


def _run(command: Sequence[str], path: Path) -> str | None:
    """Return the output of a tool about a file, or None if it is not installed or fails."""
    if shutil.which(command[0]) is None:
        return None
    try:
        answer = subprocess.run(
            [*command, str(path)], capture_output=True, text=True, timeout=TOOL_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout if answer.returncode == 0 else None
