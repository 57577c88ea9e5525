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

from penstock.errors import InputError
from penstock.files import reason
from penstock.learn.profiles.mixture import Base, Mixture, combine
from penstock.learn.profiles.profile import BasePattern
from penstock.model import Curve
from penstock.sim.formats.decode import ERRORS, Points, parse_curve

_Bytes = Annotated[float, Meta(gt=0)]


class Part(msgspec.Struct, frozen=True, kw_only=True):
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
    patterns: dict[str, list[Part]] | None = None
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
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from error
    except ERRORS as error:
        raise InputError(f"{path} is not a file of curves: {reason(error)}") from error
    if file.patterns is None:
        raise InputError(
            f"{path} does not say which patterns its curves belong to; it comes from an older "
            "'penstock explore': measure again, or give mn4"
        )
    jobs = {job.id: job for job in file.jobs if file.patterns.get(job.id)}
    measured = {
        name: parse_curve(job.curve, f"{path}, job {name!r}, curve") for name, job in jobs.items()
    }
    parts = {name: file.patterns[name] for name in jobs}
    bases = tuple(
        _base(jobs[name], some[0], measured[name]) for name, some in parts.items() if len(some) == 1
    )
    if not bases:
        raise InputError(f"{path} has no job of a single pattern; measure some, one per phase")
    mixtures = tuple(
        MeasuredMixture(
            name=name, curve=measured[name], prediction=combine(_parts(jobs[name], some), bases)
        )
        for name, some in parts.items()
        if len(some) > 1
    )
    return PatternFile(bases=bases, mixtures=mixtures, emulated=file.emulated)


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


def _parts(job: _Job, parts: list[Part]) -> list[BasePattern]:
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
