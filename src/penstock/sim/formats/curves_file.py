"""What a file says of applications: the input of `penstock curves import` and `up --curves`.

    {"applications": [{"application": "ior", "user": "ann", "nodes": 4, "volume": "1 GiB",
                       "compute": "2 min", "curve": {"1": "28.9 MB/s", "4": 62.4}}]}

A number without a unit is in `unit`, MB/s by default, and MB for a volume. `volume` and `compute`
are those of one phase. A jobs file, with "jobs", is read too: of each job the curve, its program
and its size. Volume and compute of a jobs file are of whole runs, and are left out.
"""

from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Annotated

import msgspec

from penstock import units
from penstock.errors import InputError, error_prefix
from penstock.learn.imported import MOST_IMPORTED, Imported, ImportedApplication
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


class _File(msgspec.Struct, frozen=True, kw_only=True):
    applications: list[msgspec.Raw] | None = None
    jobs: list[msgspec.Raw] | None = None
    unit: str = UNIT


def read_curves(path: Path) -> list[ImportedApplication]:
    """Return what a file says of applications; InputError: it cannot be used."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; give a file of curves") from error
    with error_prefix(path):
        file = decode(data, _File)
        if (file.applications is None) == (file.jobs is None):
            raise InputError('give either "applications" or "jobs"')
        unit = _unit(file.unit)
        if file.applications is not None:
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
