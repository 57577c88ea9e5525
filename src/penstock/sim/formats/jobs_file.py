"""Jobs as a scheduler knows them, without their phases: what allocating, placing and packing ask.

    {"jobs": [{"id", "nodes", "processes", "curve": {"0": 196, "1": 78}, "volume", "compute"}]}

`curve` is the job's bandwidth by number of resources (0: direct access) in any unit, `volume` what
it moves in all in the same unit's numerator, `compute` the seconds that it computes, or words; it
may further have `w_iter`, `user` and `executable`. A job that was never measured may have `write`
and `machine` instead of a curve (predicted.py): its bandwidth is then predicted, in MB/s, and so
its volume in MB. A workload file, whose jobs have phases, says
the same and more, and is read too.
"""

from pathlib import Path
from typing import Annotated

import msgspec

from penstock import units
from penstock.errors import InputError
from penstock.model import Curve, Job, Site
from penstock.sim import formats
from penstock.sim.formats import curves, json_errors, predicted_curves

_Count = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class _Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str | int | None = None
    nodes: _Count = 1
    processes: _Count | None = None
    user: str = ""
    executable: str = ""
    curve: curves.Points | None = None
    volume: float | None = None
    compute: float | str | None = None
    w_iter: float | str | None = None
    write: predicted_curves.WriteEntry | None = None
    machine: str | None = None
    model: str | None = None


class _File(msgspec.Struct, frozen=True, kw_only=True):
    jobs: list[msgspec.Raw]


class _Phases(msgspec.Struct, frozen=True, kw_only=True):
    phases: msgspec.Raw = msgspec.Raw(b"")


def read_jobs(path: Path, site: Site | None = None) -> list[Job]:
    """Return the jobs in a jobs file or a workload file."""
    if is_workload(path):
        return list(formats.read(path, site).jobs())
    try:
        return _read(path.read_bytes())
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def is_workload(path: Path) -> bool:
    """Say whether the jobs in a file have phases, so that it is a workload file."""
    formats.check_readable(path)
    if path.suffix.lower() != ".json":
        return True
    data = path.read_bytes()
    try:
        jobs = msgspec.json.decode(data, type=_File).jobs
        return any(msgspec.json.decode(raw, type=_Phases).phases for raw in jobs[:1])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _read(data: bytes) -> list[Job]:
    try:
        file = msgspec.json.decode(data, type=_File)
    except msgspec.ValidationError as error:
        raise json_errors.wrong(error, "", _File.__struct_fields__) from error
    except msgspec.DecodeError as error:
        raise json_errors.malformed(str(error), data, 0) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise InputError("not a JSON text in UTF-8 of jobs") from error
    if not file.jobs:
        raise InputError("jobs is empty; give at least one job")
    jobs = [_job(serial, raw) for serial, raw in enumerate(file.jobs)]
    names: set[str] = set()
    for job in jobs:
        if job.id in names:
            raise InputError(f"two jobs are called {job.id!r}; give each its own id")
        names.add(job.id)
    return jobs


def _job(serial: int, raw: msgspec.Raw) -> Job:
    try:
        given = msgspec.json.decode(raw, type=_Job)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise json_errors.wrong(error, f"jobs[{serial}]", _Job.__struct_fields__) from error
    name = str(serial) if given.id is None else str(given.id)
    if given.volume is not None and not given.volume >= 0:
        raise InputError(f"job {name!r}, volume is {given.volume:g}; give zero or more")
    curve, volume = _curve(given, name)
    return Job(
        id=name,
        serial=serial,
        nodes=given.nodes,
        processes=given.processes,
        user=given.user,
        executable=given.executable,
        curve=curve,
        volume=volume,
        compute=_seconds(given.compute, f"job {name!r}, compute"),
        w_iter=_seconds(given.w_iter, f"job {name!r}, w_iter"),
    )


def _curve(given: _Job, name: str) -> tuple[Curve | None, float | None]:
    """Return a job's bandwidths, measured or predicted, and its volume."""
    if given.write is None:
        if given.machine is not None or given.model is not None:
            raise InputError(f"job {name!r} has a machine or a model but no write; give one")
        if given.curve is None:
            return None, given.volume
        return curves.parse(given.curve, f"job {name!r}, curve"), given.volume
    if given.curve is not None:
        raise InputError(f"job {name!r} has a curve and a write; give one of them")
    found, volume = predicted_curves.predict_curve(
        given.write, given.nodes, given.machine, given.model, f"job {name!r}, write"
    )
    return found, volume if given.volume is None else given.volume


def _seconds(value: float | str | None, where: str) -> float | None:
    if value is None:
        return None
    try:
        return units.seconds(value)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
