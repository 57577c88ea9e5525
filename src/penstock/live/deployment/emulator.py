"""An emulated parallel file system: a directory whose data calls take a cluster's time.

Data is really stored in the directory. Processes under the emulator's preload library share one
file, with one word a storage target and a link, and sleep until theirs would have served them.
docs/live/emulator.md has the model and the file.
"""

import mmap
import os
import struct
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock import units
from penstock.errors import InputError, unknown
from penstock.files import reason, replacing
from penstock.live.protocol.preload import library

VERSION = 2
MAGIC = b"PNSTEMUL"
ROOT_BYTES, TARGETS, IO_NODE_LINKS, CLIENT_LINKS = 1024, 256, 256, 4096
_HEAD = struct.Struct(f"<8sIIQIIQQQQQQQII{ROOT_BYTES}sQ24x")
_TARGET = struct.Struct("<4Q32x")
FILE_BYTES = _HEAD.size + TARGETS * _TARGET.size + 8 * (IO_NODE_LINKS + CLIENT_LINKS)


def below() -> Path:
    """Return the library that goes below the client library, in jobs and I/O nodes alike."""
    return library("libpenstock_emulator.so")


def above() -> Path:
    """Return the library that goes above the client library, in jobs: their links."""
    return library("libpenstock_emulator_link.so")


def environment(
    path: Path, *, io_node: int | None = None, client: str | None = None
) -> dict[str, str]:
    """Return what an I/O node or a job's process needs beside the preloaded libraries."""
    role = {}
    if io_node is not None:
        role = {"PENSTOCK_EMULATOR_LINK": f"io-node:{io_node}"}
    elif client is not None:
        role = {"PENSTOCK_EMULATOR_LINK": f"client:{client}"}
    return {"PENSTOCK_EMULATOR": str(path.resolve())} | role


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a storage target has done since the emulation began."""

    requests: int
    bytes: int
    switches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulation:
    """The machine to emulate, in bytes and seconds; a link of `None` has no limit."""

    targets: int = 4
    rate: float = 200 * 2**20
    latency: float = 500e-6
    switch: float = 2e-3
    read_switch: float | None = None  # of reads; None: as of writes
    stripe: int = 2**20
    count: int = 1
    sync: float = 0.0
    io_node_link: float | None = None
    client_link: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.targets <= TARGETS:
            raise InputError(f"{self.targets} emulated targets; give 1 to {TARGETS}")
        if not 1 <= self.count <= self.targets:
            raise InputError(
                f"a file on {self.count} of {self.targets} emulated targets;"
                f" give a count of 1 to {self.targets}"
            )
        for name in ("rate", "stripe", "io_node_link", "client_link"):
            value = getattr(self, name)
            if value is not None and not 1 <= value < 2**63:
                raise InputError(f"emulated {_kebab(name)} of {value:g}; give one byte or more")
        if self.stripe > LARGEST_STRIPE:
            raise InputError(f"emulated stripe of {self.stripe:g}; give at most {LARGEST_STRIPE:g}")
        for name in ("latency", "switch", "read_switch", "sync"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= LONGEST:
                raise InputError(f"emulated {_kebab(name)} of {value:g} s; give 0 to {LONGEST:g} s")

    @staticmethod
    def parse(text: str) -> "Emulation":
        """Return what `--emulate` says: a preset, `key=value,...`, both, or a TOML file."""
        if text.endswith(".toml"):
            return Emulation._from_table(_load(Path(text)))
        table: dict[str, Any] = {}
        for k, item in enumerate(text.split(",")):
            key, equals, value = (part.strip() for part in item.partition("="))
            if not equals and k == 0:
                table["preset"] = key
            elif not equals or not value:
                raise InputError(f"--emulate has {item.strip()!r}; give key=value, or a file.toml")
            elif key in table:
                raise InputError(f"--emulate has {key!r} twice; give it once")
            else:
                table[key] = value
        return Emulation._from_table(table)

    @staticmethod
    def _from_table(table: Mapping[str, Any]) -> "Emulation":
        preset = str(table.get("preset", "laptop"))
        if preset not in PRESETS:
            raise unknown("emulation", preset, PRESETS)
        degradation = PRESETS[preset]
        table = {**MACHINES.get(preset, {}), **table}
        values: dict[str, Any] = {}
        for key, value in table.items():
            if key == "preset":
                continue
            if key not in _PARSERS:
                raise unknown("key of an emulation", key, _PARSERS)
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise InputError(f"emulated {key} is {value!r}; give a number, or one with a unit")
            values[key.replace("-", "_")] = _PARSERS[key](value)
        machine = Emulation(**values)
        if "switch" in values or degradation is None:
            return machine
        return Emulation.degrading(degradation, base=machine)

    @staticmethod
    def degrading(
        degradation: float, *, request: int = 2**20, base: "Emulation | None" = None
    ) -> "Emulation":
        """Return a machine on which jobs that write at once lose this part of their bandwidth.

        Alone, a request takes c = latency + request / rate on its target. Of several jobs in turn,
        each request is a change of streams: 1 - d = c / (c + switch). (Paper packs, section 2.)
        """
        if not 0 <= degradation < 1:
            raise InputError(f"a degradation of {degradation:g}; give 0 or more, and less than 1")
        base = Emulation() if base is None else base
        alone = base.latency + request / base.rate
        return replace(base, switch=alone * degradation / (1 - degradation))

    def first_target(self, file: Path) -> int:
        """Return which target has the first stripe of a file; the next ones follow."""
        return file.stat().st_ino % self.targets

    def create(self, path: Path, root: Path) -> None:
        """Write the file that processes share, for a directory; it is good until the next boot."""
        # As the kernel names open files: resolved, and without a slash at the end.
        name = os.fsencode(root.resolve())
        if not root.is_dir() or name == b"/" or len(name) >= ROOT_BYTES:
            raise InputError(f"emulated root {str(root)!r} is no directory that can be emulated")
        head = _HEAD.pack(
            MAGIC,
            VERSION,
            FILE_BYTES,
            time.monotonic_ns(),
            self.targets,
            self.count,
            round(self.stripe),
            round(self.rate),
            round(self.latency * 1e9),
            round(self.switch * 1e9),
            round(self.sync * 1e9),
            round(self.io_node_link or 0),
            round(self.client_link or 0),
            len(name),
            0,
            name,
            round((self.switch if self.read_switch is None else self.read_switch) * 1e9),
        )
        with replacing(path) as partial:
            partial.write_bytes(head.ljust(FILE_BYTES, b"\0"))


LARGEST_STRIPE = 2**40
LONGEST = 60.0
"""Seconds that one cost may be: a slip of the unit is no machine."""

PRESETS: Mapping[str, float | None] = {
    "laptop": None,
    "degradation-2": 0.02,
    "degradation-16": 0.16,
    "degradation-11": 0.11,
    "disks": None,
}
"""Degradations are those that use cases A, B and C of paper packs saw (section 2)."""
MACHINES: Mapping[str, Mapping[str, str]] = {
    "disks": {
        "targets": "4",
        "count": "4",
        "stripe": "64 KiB",
        "rate": "32 MiB/s",
        "latency": "100 us",
        "switch": "0 s",
        "read-switch": "6 ms",
    },
}
"""What a preset says of other keys. docs/live/emulator.md has the reasons."""


def served(path: Path) -> list[Served]:
    """Return what each target has done so far."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        magic, version, size, _, targets = struct.unpack_from("<8sIIQI", content)
        if (magic, version, size) != (MAGIC, VERSION, len(content)):
            raise InputError(f"{path} is no emulation of this version; create it anew")
        return [
            Served(requests=requests, bytes=volume, switches=switches)
            for _, requests, volume, switches in (
                _TARGET.unpack_from(content, _HEAD.size + k * _TARGET.size) for k in range(targets)
            )
        ]


def _load(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"emulation {path} cannot be read: {reason(error)}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"emulation {path} is no TOML: {reason(error)}") from error


def _kebab(name: str) -> str:
    return name.replace("_", "-")


def _whole(value: float | str) -> int:
    try:
        number = float(value)
    except ValueError:
        number = 0.5
    if not number.is_integer():
        raise InputError(f"{value!r} is not a number of targets; give a whole number")
    return int(number)


def _bytes(value: float | str) -> int:
    return round(units.volume(value))


_PARSERS: Mapping[str, Callable[[float | str], float]] = {
    "targets": _whole,
    "rate": units.bandwidth,
    "latency": units.seconds,
    "switch": units.seconds,
    "read-switch": units.seconds,
    "stripe": _bytes,
    "count": _whole,
    "sync": units.seconds,
    "io-node-link": units.bandwidth,
    "client-link": units.bandwidth,
}
