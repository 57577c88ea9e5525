"""What a file says of applications: the input of `penstock curves import` and `up --curves`.

    {"applications": [{"application": "ior", "user": "ann", "nodes": 4, "volume": "1 GiB",
                       "compute": "2 min", "curve": {"1": "28.9 MB/s", "4": 62.4}}]}

A number without a unit is in `unit`, MB/s by default, and MB for a volume. `volume` and `compute`
are those of one phase. A jobs file, with "jobs", is read too: of each job the curve, its program
and its size. Volume and compute of a jobs file are of whole runs, and are left out. So is a file
of `penstock profile --curves --out`, with "profiles": each has an estimated curve, in MB/s.
One that is a guess is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated

import msgspec

from penstock import units
from penstock.errors import InputError, error_prefix
from penstock.learn.imported import (
    MOST_IMPORTED,
    NOTHING_IMPORTED,
    Imported,
    ImportedApplication,
)
from penstock.sim.formats.decode import ERRORS, decode, field_error, parse_counts
from penstock.sim.formats.jobs_file import read_jobs

UNIT = "MB/s"
Quantity = float | str
PARSERS: Mapping[str, Callable[[str], float]] = {
    "curve": units.bandwidth,
    "volume": units.volume,
    "compute": units.seconds,
    "w_iter": units.seconds,
}
"""How a field that is given in words is read."""
_Count = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class _Application(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    application: str
    user: str = ""
    nodes: _Count = 1
    curve: dict[str, Quantity] = {}
    volume: Quantity | None = None
    compute: Quantity | None = None
    w_iter: Quantity | None = None


class _Write(msgspec.Struct, frozen=True, kw_only=True):
    nodes: _Count | None = None


class _Profile(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    executable: str | None = None
    nodes: _Count | None = None
    write: _Write | None = None
    curve: dict[str, Quantity] | None = None
    guess: bool = False


class _File(msgspec.Struct, frozen=True, kw_only=True):
    applications: list[msgspec.Raw] | None = None
    jobs: list[msgspec.Raw] | None = None
    profiles: list[_Profile] | None = None
    unit: str = UNIT


def read_curves(path: Path) -> list[ImportedApplication]:
    """Return what a file says of applications; InputError: it cannot be used."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; give a file of curves") from error
    with error_prefix(path):
        file = decode(data, _File)
        kinds = (file.applications, file.jobs, file.profiles)
        if sum(kind is not None for kind in kinds) != 1:
            raise InputError('give one of "applications", "jobs" and "profiles"')
        unit = _unit(file.unit)
        if file.profiles is not None:
            applications = _profiles(file.profiles, unit)
        elif file.applications is not None:
            applications = [_application(k, raw, unit) for k, raw in enumerate(file.applications)]
        else:
            applications = _jobs(path, unit)
        if not 0 < len(applications) <= MOST_IMPORTED:
            raise InputError(
                f"it has {len(applications)} applications with a curve; give 1 to {MOST_IMPORTED}"
            )
        _check(applications)
    return applications


def _unit(name: str) -> float:
    with error_prefix("unit"):
        return units.bandwidth(f"1 {name}")


def _application(number: int, raw: msgspec.Raw, unit: float) -> ImportedApplication:
    where = f"applications[{number}]"
    try:
        entry = msgspec.json.decode(raw, type=_Application)
    except ERRORS as error:
        raise field_error(error, where, _Application) from error

    def value(name: str, given: float | str | None, unit: float = 1.0) -> float | None:
        with error_prefix(f"{where}, {name}"):
            return PARSERS[name](given) if isinstance(given, str) else given and given * unit

    curve = {n: value("curve", bandwidth, unit) or 0.0 for n, bandwidth in entry.curve.items()}
    return ImportedApplication(
        application=entry.application,
        user=entry.user,
        nodes=entry.nodes,
        imported=Imported(
            curve=parse_counts(curve, f"{where}, curve"),
            volume=value("volume", entry.volume, unit),
            compute=value("compute", entry.compute),
            w_iter=value("w_iter", entry.w_iter),
        ),
    )


def _jobs(path: Path, unit: float) -> list[ImportedApplication]:
    return [
        ImportedApplication(
            # Live jobs have the name of their program without its folder.
            application=PurePath(job.executable).name or job.id,
            user=job.user,
            nodes=job.nodes,
            imported=Imported(
                curve={
                    n: bandwidth * unit
                    for n, bandwidth in zip(job.curve.counts, job.curve.bandwidths, strict=True)
                }
            ),
        )
        for job in read_jobs(path)
        if job.curve is not None
    ]


def _profiles(profiles: Sequence[_Profile], unit: float) -> list[ImportedApplication]:
    """Return the curves that were estimated; two logs of one program: that of the later one.

    A log has the user's number on another machine: they are the caller's here.
    """
    applications = {}
    for number, profile in enumerate(profiles):
        if not profile.curve or profile.guess:
            continue
        where = f"profiles[{number}], curve"
        with error_prefix(where):
            curve = {
                count: units.bandwidth(given) if isinstance(given, str) else given * unit
                for count, given in profile.curve.items()
            }
        name = PurePath(profile.executable or "").name or profile.name
        # The log has no nodes, and --cores told them.
        nodes = profile.nodes or (profile.write and profile.write.nodes) or 1
        applications[name, nodes] = ImportedApplication(
            application=name,
            nodes=nodes,
            imported=Imported(curve=parse_counts(curve, where)),
        )
    return list(applications.values())


def within(
    applications: Sequence[ImportedApplication], most: int
) -> tuple[list[ImportedApplication], dict[str, list[int]]]:
    """Return applications with their curves up to `most` I/O nodes, and what was dropped of each.

    One of which fewer than two numbers are left loses its curve.
    """
    kept, dropped = [], {}
    for one in applications:
        curve = {n: b for n, b in one.imported.curve.items() if n <= most}
        curve = curve if len(curve) > 1 else {}
        if beyond := sorted(one.imported.curve.keys() - curve.keys()):
            dropped[one.application] = beyond
        imported = msgspec.structs.replace(one.imported, curve=curve)
        if imported != NOTHING_IMPORTED:
            kept.append(msgspec.structs.replace(one, imported=imported))
    return kept, dropped


def _check(applications: list[ImportedApplication]) -> None:
    seen: set[tuple[str, str, int]] = set()
    for one in applications:
        key = (one.user, one.application, one.nodes)
        if key in seen:
            raise InputError(
                f"application {one.application[:40]!r} with {one.nodes} nodes is given twice; "
                "import one of them with --only"
            )
        seen.add(key)
        one.check()
