"""Measured base patterns in what `penstock explore` leaves, and mixtures to hold ours against.

    {"unit": "MB/s", "jobs": [{"id", "processes", "curve", ...}],
     "patterns": {"id": [{"operation", "layout", "spatiality", "request_size", "volume"}]}}

A job of one pattern is a base; one of several is a mixture, whose curve was measured.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from penstock.errors import InputError
from penstock.files import reason
from penstock.learn.profiles.mixture import Base, Mixture, combine
from penstock.learn.profiles.profile import BasePattern
from penstock.model import Curve
from penstock.sim.formats import curves

_Bytes = Annotated[float, Meta(gt=0)]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One pattern of a job that was explored."""

    operation: Literal["read", "write"]
    layout: Literal["shared", "file-per-process"]
    spatiality: Literal["contiguous", "strided"]
    request_size: _Bytes
    volume: _Bytes


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    processes: Annotated[int, Meta(ge=1)]
    curve: curves.Points


class _File(msgspec.Struct, frozen=True, kw_only=True):
    jobs: list[_Job]
    patterns: dict[str, list[Part]] | None = None
    emulated: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A mixture that was measured."""

    name: str
    curve: Curve
    told: Mixture


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """What a file of curves has."""

    bases: tuple[Base, ...]
    mixtures: tuple[Measured, ...]
    emulated: str | None


def read(path: Path) -> Explored:
    """Return the base patterns in a file, and its mixtures as they are told from those."""
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is no file of curves: {reason(error)}") from error
    if file.patterns is None:
        raise InputError(
            f"{path} does not say which patterns its curves are of; it is of an older 'penstock "
            "explore': measure again, or give mn4"
        )
    known = {
        job.id: (job, curves.parse(job.curve, f"{path}, job {job.id!r}, curve"))
        for job in file.jobs
        if file.patterns.get(job.id)
    }
    parts = {name: file.patterns[name] for name in known}
    bases = tuple(
        _base(known[name][0], told[0], known[name][1])
        for name, told in parts.items()
        if len(told) == 1
    )
    if not bases:
        raise InputError(f"{path} has no job of a single pattern; measure some, one a phase")
    mixtures = tuple(
        Measured(name=name, curve=known[name][1], told=combine(_parts(known[name][0], told), bases))
        for name, told in parts.items()
        if len(told) > 1
    )
    return Explored(bases=bases, mixtures=mixtures, emulated=file.emulated)


def _base(job: _Job, part: Part, curve: Curve) -> Base:
    return Base(
        name=job.id,
        operation=part.operation,
        layout=part.layout,
        contiguous=part.spatiality == "contiguous",
        request_size=part.request_size,
        processes=job.processes,
        curve=curve,
    )


def _parts(job: _Job, told: list[Part]) -> list[BasePattern]:
    return [
        BasePattern(
            operation=part.operation,
            layout=part.layout,
            spatiality=part.spatiality,
            request_size=part.request_size,
            requests=max(round(part.volume / part.request_size), 1),
            volume=part.volume,
            files=1,
            processes=job.processes,
        )
        for part in told
    ]
