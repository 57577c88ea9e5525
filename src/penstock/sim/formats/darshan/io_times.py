"""When a logged run did I/O: of every request (DXT), of bins (HEATMAP), or of its files' times."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from penstock.errors import InputError
from penstock.learn.profiles.files import OPERATIONS, FileUse
from penstock.learn.profiles.profile import Source
from penstock.learn.profiles.timeline import Timeline

ENOUGH = 0.5
"""Part of a run's bytes that timed records must have, to be preferred to coarser ones."""
AT_MOST = 1.01
"""Times the files' bytes that their requests may have."""
MOST_FILES = 0.9
"""Part of the bytes that must lie in files whose times say when."""
MOST = 1 << 60
"""More bytes than any run moves: the counter is damaged."""
CLOCKS = 2.0
SEGMENT = np.dtype([("offset", "i8"), ("length", "i8"), ("begin", "f8"), ("end", "f8")])


class Log(NamedTuple):
    """A log that is open: PyDarshan's handle, its bindings, and which modules the log has."""

    handle: dict[str, Any]
    backend: Any
    modules: Mapping[str, Any]


class Transfers(NamedTuple):
    """Transfers, all reads or all writes, of one rank or each of its own."""

    rank: Any
    write: bool
    begin: Any
    end: Any
    volume: Any


def timeline_of(
    log: Log, files: Iterable[FileUse], *, seconds: float, processes: int
) -> tuple[Timeline | None, Source, int | None, list[str]]:
    """Return the best timeline that a log allows, its source, nodes if told, and remarks."""
    files = list(files)
    volume = sum(file.read.bytes + file.write.bytes for file in files)
    hosts: set[str] = set()
    notes: list[str] = []
    best: tuple[Timeline | None, Source] = (None, "none")
    for source, module in (("dxt", "DXT_POSIX"), ("dxt", "DXT_MPIIO"), ("heatmap", "HEATMAP")):
        # MPI-IO's requests are POSIX's again.
        if module not in log.modules or (module == "DXT_MPIIO" and "DXT_POSIX" in log.modules):
            continue
        timeline = Timeline(seconds, processes)
        found = _dxt(log, module, hosts, seconds) if source == "dxt" else _heatmap(log)
        seen = _fill(timeline, found)
        if module == "DXT_POSIX" and seen > AT_MOST * volume:
            raise InputError("its requests have more bytes than its files; it is damaged")
        if volume and seen >= ENOUGH * volume and best[0] is None:
            best = (timeline, "dxt" if source == "dxt" else "heatmap")
            if seen < 0.99 * volume:
                notes.append(f"times are of {seen / volume:.0%} of the bytes ({module})")
        elif volume and best[0] is None:
            notes.append(f"{module} has only {seen / volume:.0%} of the bytes, and is left out")
    if best[0] is None and volume:
        timeline = Timeline(seconds, processes)
        if _fill(timeline, _files(files)) >= MOST_FILES * volume:
            best = (timeline, "files")
        else:
            notes.append("the log does not say when it did I/O; it counts as one phase")
    return *best, len(hosts) or None, notes


def _fill(timeline: Timeline, found: Iterator[Transfers]) -> float:
    seen = 0.0
    for one in found:
        timeline.add(one.begin, one.end, one.volume, rank=one.rank, write=one.write)
        seen += float(np.sum(one.volume))
    return seen


def _files(files: Iterable[FileUse]) -> Iterator[Transfers]:
    for operation in OPERATIONS:
        told = [
            (-1 if file.shared else next(iter(file.ranks)), use.begin, use.end, use.bytes)
            for file in files
            if (use := file.of(operation)).bytes
            and math.isfinite(use.begin)
            and file.dense(operation)
        ]
        if told:
            rank, begin, end, volume = (np.array(column) for column in zip(*told, strict=True))
            yield Transfers(rank, operation == "write", begin, end, volume)


def _dxt(log: Log, module: str, hosts: set[str], seconds: float) -> Iterator[Transfers]:
    """Yield each record's requests, as arrays: PyDarshan would make a dictionary of each."""
    ffi, library = log.backend.ffi, log.backend.libdutil
    index = log.modules[module]["idx"]
    head = ffi.sizeof("struct dxt_file_record")
    while True:
        place = ffi.new("void **")
        if library.darshan_log_get_record(log.handle["handle"], index, place) < 1:
            return
        record = ffi.cast("struct dxt_file_record *", place[0])
        hosts.add(ffi.string(record.hostname).decode(errors="replace"))
        writes, reads, rank = record.write_count, record.read_count, record.base_rec.rank
        if writes < 0 or reads < 0:
            raise InputError("a file is said to have a negative number of requests; it is damaged")
        text = ffi.buffer(place[0] + head, (writes + reads) * SEGMENT.itemsize)
        requests = np.frombuffer(text, SEGMENT)
        check_requests(requests, seconds)
        for write, some in ((True, requests[:writes]), (False, requests[writes:])):
            volume = some["length"].astype(float)
            yield Transfers(rank, write, some["begin"], some["end"], volume)
        library.darshan_free(place[0])


def check_requests(requests: Any, seconds: float) -> None:
    """Refuse requests that cannot be: the library does not see all damage."""
    begin, end = requests["begin"], requests["end"]
    # Runs were once logged in whole seconds, and clocks of nodes differ.
    fine = (begin >= -CLOCKS) & (end >= begin) & (end <= seconds + CLOCKS)
    fine &= (requests["length"] >= 0) & (requests["length"] <= MOST) & (requests["offset"] >= 0)
    if not fine.all():
        raise InputError("it has requests before, after or beyond all measure; it is damaged")


def _heatmap(log: Log) -> Iterator[Transfers]:
    names = log.backend.log_get_name_records(log.handle)
    interfaces = {name.rpartition(":")[2] for name in names.values() if name.startswith("heatmap:")}
    # MPI-IO's bytes are POSIX's again.
    wanted = {"POSIX", "STDIO"} if "POSIX" in interfaces else interfaces
    while (record := log.backend.log_get_record(log.handle, "HEATMAP")) is not None:
        if str(names.get(record["id"], "")).rpartition(":")[2] not in wanted:
            continue
        yield from binned(record)


def binned(record: Mapping[str, Any]) -> Iterator[Transfers]:
    """Yield what a record of the HEATMAP module has, a transfer a bin."""
    width = float(record["bin_width_seconds"])
    if not 0 < width < math.inf:
        raise InputError(f"a bin of its heat map is {width:g} s long; it is damaged")
    for write, key in ((True, "write_bins"), (False, "read_bins")):
        bins = np.asarray(record[key])
        some = np.flatnonzero(bins > 0)
        yield Transfers(
            int(record["rank"]), write, some * width, (some + 1) * width, bins[some].astype(float)
        )
