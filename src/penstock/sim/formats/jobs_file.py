"""Jobs as a scheduler knows them, without phases: the input of allocate, place and pack.

    {"jobs": [{"id", "nodes", "processes", "curve": {"0": 196, "1": 78}, "volume", "compute"}]}

`curve` is the job's bandwidth by number of resources (0: direct access) in any unit, `volume` its
total I/O in the numerator of that unit, `compute` its computation in seconds or words; it may
further have `w_iter`, `user` and `executable`. A workload file, whose jobs have phases, contains
all of that, and is read too.

A job that was never measured may have a write instead of a curve: a model predicts its bandwidth,
in MB/s, and its volume is in MB.

    {"id": "climate", "nodes": 64, "machine": "titan",
     "write": {"cores": 16, "burst": "100 MB", "shared": true}}

`machine` is a name that `penstock machines` lists or a TOML file, `model` a file that `penstock
write-model train` made. `over` names the stage that is divided (docs/writes/predict.md); by default
the last group of nodes before the storage: I/O nodes, or routers.
"""

from pathlib import Path
from typing import Annotated

import msgspec

from penstock import units
from penstock.errors import InputError, error_prefix
from penstock.model import Curve, Job, Site
from penstock.model.write import Write
from penstock.sim import formats
from penstock.sim.formats.decode import ERRORS, Points, decode, field_error, parse_curve

_Count = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class _Write(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The write of a job; without `nodes` all nodes of the job take part in it."""

    cores: int
    burst: float | str
    nodes: int | None = None
    shared: bool = False
    stripe_count: int | None = None
    stripe_size: float | str | None = None
    over: str = ""


class _Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str | int | None = None
    nodes: _Count = 1
    processes: _Count | None = None
    user: str = ""
    executable: str = ""
    curve: Points | None = None
    volume: float | None = None
    compute: float | str | None = None
    w_iter: float | str | None = None
    write: _Write | None = None
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
    with error_prefix(path):
        return _read(path.read_bytes())


def is_workload(path: Path) -> bool:
    """Return True if the jobs in a file have phases."""
    formats.check_readable(path)
    if path.suffix.lower() != ".json":
        return True
    data = path.read_bytes()
    try:
        jobs = msgspec.json.decode(data, type=_File).jobs
        return any(msgspec.json.decode(raw, type=_Phases).phases for raw in jobs[:1])
    except ERRORS:
        return False


def _read(data: bytes) -> list[Job]:
    file = decode(data, _File)
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
        entry = msgspec.json.decode(raw, type=_Job)
    except ERRORS as error:
        raise field_error(error, f"jobs[{serial}]", _Job) from error
    name = str(serial) if entry.id is None else str(entry.id)
    if entry.volume is not None and not entry.volume >= 0:
        raise InputError(f"job {name!r}, volume is {entry.volume:g}; give zero or more")
    curve, volume = _curve(entry, name)
    return Job(
        id=name,
        serial=serial,
        nodes=entry.nodes,
        processes=entry.processes,
        user=entry.user,
        executable=entry.executable,
        curve=curve,
        volume=volume,
        compute=_seconds(entry.compute, f"job {name!r}, compute"),
        w_iter=_seconds(entry.w_iter, f"job {name!r}, w_iter"),
    )


def _curve(entry: _Job, name: str) -> tuple[Curve | None, float | None]:
    """Return a job's curve, measured or predicted, and its volume."""
    if entry.write is None:
        if entry.machine is not None or entry.model is not None:
            raise InputError(f"job {name!r} has a machine or a model but no write; give one")
        if entry.curve is None:
            return None, entry.volume
        return parse_curve(entry.curve, f"job {name!r}, curve"), entry.volume
    if entry.curve is not None:
        raise InputError(f"job {name!r} has a curve and a write; give one of them")
    with error_prefix(f"job {name!r}, write"):
        curve, volume = _predict(entry, entry.write)
    return curve, volume if entry.volume is None else entry.volume


def _predict(job: _Job, entry: _Write) -> tuple[Curve, float]:
    """Return the predicted curve of a job, and the megabytes that it writes."""
    from penstock.learn.write_models import curves, model  # noqa: PLC0415 - rarely needed

    size = entry.stripe_size
    write = Write(
        nodes=job.nodes if entry.nodes is None else entry.nodes,
        cores=entry.cores,
        burst=units.volume(entry.burst),
        shared=entry.shared,
        stripe_count=entry.stripe_count,
        stripe_size=None if size is None else units.volume(size),
    )
    predictor = model.open_model(job.machine, None if job.model is None else Path(job.model))
    return curves.curve(predictor, write, over=entry.over), write.bytes / curves.MB


def _seconds(value: float | str | None, where: str) -> float | None:
    if value is None:
        return None
    with error_prefix(where):
        return units.seconds(value)
