"""Workloads as JSON: `{"horizon": s, "jobs": [{"id", "release", "nodes", "phases"}, ...]}`.

`phases` is a list of [compute, io], one pair per iteration: seconds, or words such as "5 min"; an
`io` in words may be a volume ("12 GiB"), which the bandwidth of the job's resources turns into
seconds. A job may further have `max_share`, `resources` (a list of numbers), `pack` (the name of
the pack it belongs to), `after` (the name of the pack it waits for), `user`, `executable`,
`processes`, `hints` (an object; `profile` there is the mean w_iter of its class) and `curve` (an
object: its bandwidth by number of resources, 0 being direct access). `generator` of the file is
what drew the jobs, as `penstock generate` writes it: its preset, options and seed.

Each job is decoded and put into the arrays before the next one, so that reading takes little more
memory than the file and the arrays.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from penstock import units
from penstock.errors import InputError, unknown
from penstock.model import Curve, Site
from penstock.sim.formats import free_memory
from penstock.sim.formats.decode import (
    ERRORS,
    Points,
    curve_points,
    decode,
    field_error,
    parse_curve,
    seconds,
)
from penstock.sim.workload import Floats, Generator, Ints, Workload

PIECE = 1 << 22
"""Bytes of phases decoded at once: Python's numbers take three times the memory of their text."""
JOBS_PER_REPORT = 4096
"""Jobs between two reports of progress."""

_Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
_Int = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]


class Details(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields of a job that a Workload keeps in `details`."""

    user: str = ""
    executable: str = ""
    processes: _Count | None = None
    hints: dict[str, float | str] = {}


class _Job(Details, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str | int | None = None
    release: float | str = 0.0
    nodes: _Long = 1
    max_share: float = 1.0
    resources: list[_Int] | None = None
    pack: str | int | None = None
    after: str | int | None = None
    curve: Points | None = None
    phases: msgspec.Raw


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    horizon: float | str | None = None
    generator: Generator | None = None
    jobs: list[msgspec.Raw]


class _Id(msgspec.Struct, frozen=True, kw_only=True):
    id: str | int | None = None


def read(data: bytes, site: Site, report: Callable[[int, int], None] | None = None) -> Workload:
    """Decode a workload; its numbers are not checked."""
    file = decode(data, _File)
    if not file.jobs:
        raise InputError("jobs is empty; give at least one job")
    reader = _Reader(len(file.jobs), data.count(b"["), site)
    for j, raw in enumerate(file.jobs):
        reader.add(j, raw)
        if report is not None and j % JOBS_PER_REPORT == 0:
            report(j, len(file.jobs))
    horizon = None if file.horizon is None else seconds(file.horizon, "horizon")
    return reader.workload(horizon, file.generator)


class _Reader:
    """Collects jobs one by one into the arrays of a Workload."""

    def __init__(self, jobs: int, brackets: int, site: Site) -> None:
        # Each phase opens a bracket, and hardly anything else does.
        free = free_memory.available()
        if free is not None and brackets * 16 > free:
            raise MemoryError
        self.site = site
        self.compute, self.io = np.empty(brackets), np.empty(brackets)
        self.offsets = np.zeros(jobs + 1, np.int64)
        self.release, self.max_share = np.empty(jobs), np.empty(jobs)
        self.nodes = np.empty(jobs, np.int64)
        self.resource_offsets = np.zeros(jobs + 1, np.int64)
        self.resources: list[int] = []
        self.ids: list[str] = []
        self.pack: dict[int, str] = {}
        self.after: dict[int, str] = {}
        self.details: dict[int, dict[str, Any]] = {}
        self.curves: dict[int, Curve] = {}
        self._job = msgspec.json.Decoder(_Job)
        self._numbers = msgspec.json.Decoder(list[tuple[float, float]])
        self._words = msgspec.json.Decoder(list[tuple[float | str, float | str]])

    def add(self, j: int, raw: msgspec.Raw) -> None:
        try:
            job = self._job.decode(raw)
        except ERRORS as error:
            raise field_error(error, _name(j, raw), _Job) from error
        self.ids.append(str(j) if job.id is None else str(job.id))
        self.release[j] = seconds(job.release, f"job {self.ids[j]!r}, release")
        self.nodes[j], self.max_share[j] = job.nodes, job.max_share
        self.resources += (0,) if job.resources is None else job.resources
        self.resource_offsets[j + 1] = len(self.resources)
        if job.pack is not None:
            self.pack[j] = str(job.pack)
        if job.after is not None:
            self.after[j] = str(job.after)
        if job.user or job.executable or job.processes is not None or job.hints:
            self.details[j] = {k: v for k in Details.__struct_fields__ if (v := getattr(job, k))}
        if job.curve is not None:
            self.curves[j] = parse_curve(job.curve, f"job {self.ids[j]!r}, curve")
        i = int(self.offsets[j])
        for pairs in self._phases(j, job.phases):
            self.compute[i : i + len(pairs) // 2] = pairs[::2]
            self.io[i : i + len(pairs) // 2] = pairs[1::2]
            i += len(pairs) // 2
        self.offsets[j + 1] = i

    def _phases(self, j: int, raw: msgspec.Raw) -> Iterator[Floats]:
        """Yield the numbers of a job's phases, compute and io alternating, one piece at a time."""
        done = 0
        for piece in _pieces(raw):
            try:
                pairs: Any = self._numbers.decode(piece)
            except ERRORS:
                pairs = self._in_words(j, done, piece)
            yield np.fromiter(itertools.chain.from_iterable(pairs), np.float64, 2 * len(pairs))
            done += len(pairs)

    def _in_words(self, j: int, done: int, piece: msgspec.Raw | bytes) -> list[tuple[float, float]]:
        where = f"job {self.ids[j]!r}, phases"
        try:
            rows = self._words.decode(piece)
        except ERRORS as error:
            raise field_error(error, where, first=done) from error
        width = int(self.resource_offsets[j + 1] - self.resource_offsets[j])
        return [
            (
                c if isinstance(c, float) else seconds(c, f"{where}[{k}], compute"),
                x if isinstance(x, float) else self._io_seconds(x, f"{where}[{k}], io", width),
            )
            for k, (c, x) in enumerate(rows, done)
        ]

    def _io_seconds(self, text: str, where: str, width: int) -> float:
        if not units.is_volume(text):
            return seconds(text, where)
        if self.site.bandwidth is None:
            raise InputError(
                f"{where} is the volume {text!r}, but the site has no bandwidth to turn it into "
                "seconds; set site.bandwidth ('2 GiB/s')"
            )
        return units.volume(text) / (self.site.bandwidth * max(1, width))

    def workload(self, horizon: float | None, generator: Generator | None) -> Workload:
        n, iterations = len(self.ids), int(self.offsets[-1])
        barrier, after = self._barriers(n)
        profile = self._profile(n)
        numbered = all(name == str(j) for j, name in enumerate(self.ids))
        return Workload(
            compute=self.compute[:iterations],
            io=self.io[:iterations],
            offsets=self.offsets,
            release=self.release,
            ids=None if numbered else self.ids,
            nodes=self.nodes,
            max_share=self.max_share,
            resource_offsets=self.resource_offsets,
            resources=self.resources,
            barrier=barrier,
            after=after,
            profile=profile,
            horizon=horizon,
            curves=[self.curves.get(j) for j in range(n)] if self.curves else None,
            details=[self.details.get(j, {}) for j in range(n)] if self.details else None,
            generator=generator,
        )

    def _barriers(self, n: int) -> tuple[Ints, Ints]:
        names = list(dict.fromkeys(self.pack.values()))
        if all(re.fullmatch(r"\d{1,9}", name, re.ASCII) for name in names):
            names.sort(key=int)
        number = {name: i for i, name in enumerate(names)}
        barrier, after = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
        for j, name in self.pack.items():
            barrier[j] = number[name]
        for j, name in self.after.items():
            if name not in number:
                error = unknown("pack", name, number) if number else "no job is in a pack"
                raise InputError(f"job {self.ids[j]!r}, after: {error}")
            after[j] = number[name]
        return barrier, after

    def _profile(self, n: int) -> Floats | None:
        """Move the hint `profile` into an array of its own, if all jobs have it."""
        hints = [self.details.get(j, {}).get("hints", {}).get("profile") for j in range(n)]
        if not all(isinstance(value, float) for value in hints):
            return None
        for j in range(n):
            rest = {k: v for k, v in self.details[j]["hints"].items() if k != "profile"}
            others = {k: v for k, v in self.details[j].items() if k != "hints"}
            self.details[j] = others | ({"hints": rest} if rest else {})
        self.details = {j: details for j, details in self.details.items() if details}
        return np.array(hints)


def write(workload: Workload, path: Path, report: Callable[[int, int], None] | None = None) -> None:
    """Write a workload as JSON, one line per job."""
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        file.write(b'{"horizon":%b,' % encode(workload.horizon))
        if workload.generator is not None:
            file.write(b'"generator":%b,' % encode(workload.generator))
        file.write(b'"jobs":[')
        for j in range(len(workload)):
            file.write(b"\n" if j == 0 else b",\n")
            file.write(encode(_job(workload, j)))
            if report is not None and j % JOBS_PER_REPORT == 0:
                report(j, len(workload))
        file.write(b"\n]}\n")


def _job(workload: Workload, j: int) -> dict[str, Any]:
    rows = slice(int(workload.offsets[j]), int(workload.offsets[j + 1]))
    job: dict[str, Any] = {
        "id": j if workload.ids is None else workload.ids[j],
        "release": float(workload.release[j]),
        "nodes": int(workload.nodes[j]),
    }
    if workload.max_share[j] != 1.0:
        job["max_share"] = float(workload.max_share[j])
    if (resources := workload.resources_of(j)) != (0,):
        job["resources"] = resources
    for key, values in (("pack", workload.barrier), ("after", workload.after)):
        if values[j] >= 0:
            job[key] = str(values[j])
    if workload.curves is not None and (curve := workload.curves[j]) is not None:
        job["curve"] = curve_points(curve)
    details = dict(workload.details[j]) if workload.details is not None else {}
    profile = {} if workload.profile is None else {"profile": float(workload.profile[j])}
    if hints := profile | details.pop("hints", {}):
        details["hints"] = hints
    job |= details
    job["phases"] = np.column_stack((workload.compute[rows], workload.io[rows])).tolist()
    return job


def _pieces(raw: msgspec.Raw) -> Iterator[msgspec.Raw | bytes]:
    """Split a list of pairs into lists of at most about PIECE bytes.

    Pieces end after a closing bracket, which in a list of pairs of numbers and words ends a pair;
    in anything else some piece does not decode.
    """
    view = memoryview(raw)
    if len(view) <= PIECE:
        yield raw
        return
    first = 1
    while True:
        piece = bytes(view[first : first + PIECE])
        cut = piece.rfind(b"]") + 1
        if first + PIECE >= len(view) or cut == 0:
            yield b"[" + bytes(view[first:])
            return
        yield b"[" + piece[:cut] + b"]"
        first += cut
        # A pair is followed by a comma, or by the end of the list.
        while view[first] in b" \t\r\n":
            first += 1
        if view[first] in b"]":
            return
        first += 1


def _name(j: int, raw: msgspec.Raw) -> str:
    try:
        name = msgspec.json.decode(raw, type=_Id).id
    except (ValueError, RecursionError):
        name = None
    return f"jobs[{j}]" if name is None else f"job {str(name)!r}"
