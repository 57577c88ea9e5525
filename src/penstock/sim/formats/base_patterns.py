"""Measured base patterns in the output of `penstock explore`, and measured mixtures of them.

    {"unit": "MB/s", "jobs": [{"id", "processes", "curve", ...}],
     "patterns": {"id": [{"operation", "layout", "spatiality", "request_size", "volume"}]}}

A job of one pattern is a base. A job of several is a mixture: its measured curve is compared with
the one that is predicted from the bases.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from penstock.errors import InputError, error_prefix
from penstock.learn.profiles.mixture import Base, Mixture, combine
from penstock.learn.profiles.profile import BasePattern
from penstock.model import Curve
from penstock.sim.formats import file_errors
from penstock.sim.formats.decode import Points, decode, parse_curve

_Bytes = Annotated[float, Meta(gt=0)]


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """One pattern of an explored job."""

    operation: Literal["read", "write"]
    layout: Literal["shared", "file-per-process"]
    spatiality: Literal["contiguous", "strided"]
    request_size: _Bytes
    volume: _Bytes


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    processes: Annotated[int, Meta(ge=1)]
    curve: Points


class _File(msgspec.Struct, frozen=True, kw_only=True):
    jobs: list[_Job]
    patterns: dict[str, list[_Part]] | None = None
    emulated: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMixture:
    """A mixture with its measured curve, and the prediction from the bases."""

    name: str
    curve: Curve
    prediction: Mixture


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternFile:
    """The content of a file of curves."""

    bases: tuple[Base, ...]
    mixtures: tuple[MeasuredMixture, ...]
    emulated: str | None


def read(path: Path) -> PatternFile:
    """Read the base patterns in a file, and its mixtures with their predictions."""
    with file_errors(path):
        content = path.read_bytes()
    with error_prefix(f"{path} is not a file of curves"):
        file = decode(content, _File)
    if file.patterns is None:
        raise InputError(
            f"{path} does not say which patterns its curves belong to; it comes from an older "
            "'penstock explore': measure again, or give mn4"
        )
    bases: list[Base] = []
    mixed: list[tuple[_Job, list[_Part], Curve]] = []
    for job in file.jobs:
        if parts := file.patterns.get(job.id):
            curve = parse_curve(job.curve, f"{path}, job {job.id!r}, curve")
            if len(parts) == 1:
                bases.append(_base(job, parts[0], curve))
            else:
                mixed.append((job, parts, curve))
    if not bases:
        raise InputError(f"{path} has no job of a single pattern; measure some, one per phase")
    mixtures = tuple(
        MeasuredMixture(name=job.id, curve=curve, prediction=combine(_parts(job, parts), bases))
        for job, parts, curve in mixed
    )
    return PatternFile(bases=tuple(bases), mixtures=mixtures, emulated=file.emulated)


def _base(job: _Job, part: _Part, curve: Curve) -> Base:
    return Base(
        name=job.id,
        operation=part.operation,
        layout=part.layout,
        contiguous=part.spatiality == "contiguous",
        request_size=part.request_size,
        processes=job.processes,
        curve=curve,
    )


def _parts(job: _Job, parts: list[_Part]) -> list[BasePattern]:
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
        for part in parts
    ]
