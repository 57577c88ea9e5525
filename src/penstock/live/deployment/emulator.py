"""An emulated parallel file system: a directory whose data calls take as long as on a cluster.

The directory really stores the data. Processes under the emulator's preload library share one file,
with one word per storage target and link, and sleep until the emulated target has served them.
docs/live/emulator.md describes the model and the file.
"""

import mmap
import os
import struct
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
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


def target_library() -> Path:
    """Return the library below the client library, in jobs and I/O nodes: storage targets."""
    return library("libpenstock_emulator.so")


def link_library() -> Path:
    """Return the library above the client library, in jobs: network links."""
    return library("libpenstock_emulator_link.so")


def environment(
    path: Path, *, io_node: int | None = None, client: str | None = None
) -> dict[str, str]:
    """Return the variables that an I/O node or a job's process needs beside the libraries."""
    role = {}
    if io_node is not None:
        role = {"PENSTOCK_EMULATOR_LINK": f"io-node:{io_node}"}
    elif client is not None:
        role = {"PENSTOCK_EMULATOR_LINK": f"client:{client}"}
    return {"PENSTOCK_EMULATOR": str(path.resolve())} | role


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCounters:
    """The counters of a storage target since the emulation began."""

    requests: int
    bytes: int
    switches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulation:
    """The storage to emulate, in bytes and seconds; a link of None is unlimited."""

    targets: int = 4
    rate: float = 200 * 2**20
    latency: float = 500e-6
    switch: float = 2e-3
    read_switch: float | None = None  # for reads; None: the same as for writes
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
        if self.stripe > MAX_STRIPE:
            raise InputError(f"emulated stripe of {self.stripe:g}; give at most {MAX_STRIPE:g}")
        for name in ("latency", "switch", "read_switch", "sync"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= MAX_SECONDS:
                raise InputError(
                    f"emulated {_kebab(name)} of {value:g} s; give 0 to {MAX_SECONDS:g} s"
                )

    @staticmethod
    def parse(text: str) -> "Emulation":
        """Parse the value of `--emulate`: a preset, `key=value,...`, both, or a TOML file."""
        return Emulation._from_table(Emulation._table(text))

    @staticmethod
    def doubtful_rates(text: str) -> list[str]:
        """Return warnings about bandwidths in a valid value of `--emulate`."""
        table = Emulation._table(text)
        rates = [key for key in table if _PARSERS.get(key) is units.bandwidth]
        warnings = (units.doubtful_bandwidth(f"emulated {key}", table[key]) for key in rates)
        return [warning for warning in warnings if warning is not None]

    @staticmethod
    def _table(text: str) -> Mapping[str, Any]:
        if text.endswith(".toml"):
            return _load(Path(text))
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
        return table

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
        return Emulation.with_degradation(degradation, base=machine)

    @staticmethod
    def with_degradation(
        degradation: float, *, request: int = 2**20, base: "Emulation | None" = None
    ) -> "Emulation":
        """Return storage on which jobs that write at once lose this part of their bandwidth.

        A request takes c = latency + request / rate on its target. If several jobs alternate, every
        request switches streams: 1 - d = c / (c + switch). (Paper packs, section 2.)
        """
        if not 0 <= degradation < 1:
            raise InputError(f"a degradation of {degradation:g}; give 0 or more, and less than 1")
        base = Emulation() if base is None else base
        alone = base.latency + request / base.rate
        return replace(base, switch=alone * degradation / (1 - degradation))

    def first_target(self, file: Path) -> int:
        """Return the target of the first stripe of a file; its other stripes follow."""
        return file.stat().st_ino % self.targets

    def create(self, path: Path, root: Path) -> None:
        """Write the file that processes share; it is valid until the next boot."""
        # As the kernel names open files: resolved, and without a slash at the end.
        name = os.fsencode(root.resolve())
        if not root.is_dir() or name == b"/" or len(name) >= ROOT_BYTES:
            raise InputError(
                f"emulated root {str(root)!r} cannot be emulated: not a directory, or too long"
            )
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


MAX_STRIPE = 2**40
MAX_SECONDS = 60.0
"""Maximum of any cost: more is a wrong unit."""

PRESETS: Mapping[str, float | None] = {
    "laptop": None,
    "degradation-2": 0.02,
    "degradation-16": 0.16,
    "degradation-11": 0.11,
    "disks": None,
}
"""The degradations are those of use cases A, B and C in paper packs (section 2)."""
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
"""Other keys of presets; docs/live/emulator.md gives the reasons."""


def target_counters(path: Path) -> list[TargetCounters]:
    """Return the counters of each target."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        magic, version, size, _, targets = struct.unpack_from("<8sIIQI", content)
        if (magic, version, size) != (MAGIC, VERSION, len(content)):
            raise InputError(f"{path} is not an emulation of this version; create it again")
        return [
            TargetCounters(requests=requests, bytes=volume, switches=switches)
            for _, requests, volume, switches in (
                _TARGET.unpack_from(content, _HEAD.size + k * _TARGET.size) for k in range(targets)
            )
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnvironment:
    """The environment of I/O nodes and jobs, on a real file system or an emulated one."""

    emulation: Path | None = None

    @classmethod
    def prepare(cls, emulate: str | None, roots: Sequence[str], path: Path) -> "ProcessEnvironment":
        """Create the emulation at `path`, if there is one."""
        if emulate is None:
            return cls()
        (root,) = roots
        Emulation.parse(emulate).create(path, Path(root))
        return cls(emulation=path)

    @property
    def below(self) -> list[str]:
        """Libraries to load below the client library."""
        return [] if self.emulation is None else [str(target_library())]

    @property
    def above(self) -> list[str]:
        """Libraries to load above the client library."""
        return [] if self.emulation is None else [str(link_library())]

    def io_node(self, number: int) -> dict[str, str]:
        """Return an I/O node's whole environment; it does not load the client library."""
        variables = os.environ | {"PENSTOCK_DISABLE": "1"}
        if self.emulation is not None:
            others = filter(None, [os.environ.get("LD_PRELOAD", "")])
            variables["LD_PRELOAD"] = ":".join([*others, *self.below])
            variables |= environment(self.emulation, io_node=number)
        return variables

    def job(self, job: str) -> dict[str, str]:
        """Return the variables to add to a job's environment."""
        return {} if self.emulation is None else environment(self.emulation, client=job)


def _load(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"emulation {path} cannot be read: {reason(error)}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"emulation {path} is not TOML: {reason(error)}") from error


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
