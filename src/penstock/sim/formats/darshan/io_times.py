"""When a logged run did I/O: by request (DXT), by bin (HEATMAP), or by its files' times."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from penstock.errors import InputError
from penstock.learn.profiles.files import OPERATIONS, FileUse
from penstock.learn.profiles.profile import Source
from penstock.learn.profiles.timeline import Timeline

ENOUGH = 0.5
"""Fraction of a run's bytes that timed records must cover to be preferred to coarser ones."""
AT_MOST = 1.01
"""Limit of the bytes of all requests, relative to the bytes of the files."""
MOST_FILES = 0.9
"""Fraction of the bytes that must be in files with usable times."""
MOST = 1 << 60
"""Bytes; a larger counter is damaged."""
CLOCKS = 2.0
SEGMENT = np.dtype([("offset", "i8"), ("length", "i8"), ("begin", "f8"), ("end", "f8")])


class Log(NamedTuple):
    """An open log: PyDarshan's handle, its bindings, and the modules of the log."""

    handle: dict[str, Any]
    backend: Any
    modules: Mapping[str, Any]


class Transfers(NamedTuple):
    """Transfers, all reads or all writes, of one rank or with one rank each."""

    rank: Any
    write: bool
    begin: Any
    end: Any
    volume: Any


def best_timeline(
    log: Log, files: Iterable[FileUse], *, seconds: float, processes: int
) -> tuple[Timeline | None, Source, int | None, list[str]]:
    """Return the best timeline of a log, its source, the number of nodes if known, and notes."""
    files = list(files)
    volume = sum(file.read.bytes + file.write.bytes for file in files)
    hosts: set[str] = set()
    notes: list[str] = []
    best: tuple[Timeline | None, Source] = (None, "none")
    for source, module in (("dxt", "DXT_POSIX"), ("dxt", "DXT_MPIIO"), ("heatmap", "HEATMAP")):
        # POSIX repeats the requests of MPI-IO.
        if module not in log.modules or (module == "DXT_MPIIO" and "DXT_POSIX" in log.modules):
            continue
        timeline = Timeline(seconds, processes)
        transfers = _dxt(log, module, hosts, seconds) if source == "dxt" else _heatmap(log)
        covered = _fill(timeline, transfers)
        if module == "DXT_POSIX" and covered > AT_MOST * volume:
            raise InputError("its requests have more bytes than its files; it is damaged")
        if volume and covered >= ENOUGH * volume and best[0] is None:
            best = (timeline, "dxt" if source == "dxt" else "heatmap")
            if covered < 0.99 * volume:
                notes.append(f"times cover {covered / volume:.0%} of the bytes ({module})")
        elif volume and best[0] is None:
            notes.append(f"{module} has only {covered / volume:.0%} of the bytes, and is left out")
    if best[0] is None and volume:
        timeline = Timeline(seconds, processes)
        if _fill(timeline, _files(files)) >= MOST_FILES * volume:
            best = (timeline, "files")
        else:
            notes.append("the log does not say when it did I/O; it counts as one phase")
    return *best, len(hosts) or None, notes


def _fill(timeline: Timeline, transfers: Iterator[Transfers]) -> float:
    total = 0.0
    for one in transfers:
        timeline.add(one.begin, one.end, one.volume, rank=one.rank, write=one.write)
        total += float(np.sum(one.volume))
    return total


def _files(files: Iterable[FileUse]) -> Iterator[Transfers]:
    for operation in OPERATIONS:
        rows = [
            (-1 if file.shared else next(iter(file.ranks)), use.begin, use.end, use.bytes)
            for file in files
            if (use := file.of(operation)).bytes
            and math.isfinite(use.begin)
            and file.dense(operation)
        ]
        if rows:
            rank, begin, end, volume = (np.array(column) for column in zip(*rows, strict=True))
            yield Transfers(rank, operation == "write", begin, end, volume)


def _dxt(log: Log, module: str, hosts: set[str], seconds: float) -> Iterator[Transfers]:
    """Yield each record's requests as arrays: PyDarshan would make one dictionary per request."""
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
            raise InputError("a file has a negative number of requests; it is damaged")
        text = ffi.buffer(place[0] + head, (writes + reads) * SEGMENT.itemsize)
        requests = np.frombuffer(text, SEGMENT)
        check_requests(requests, seconds)
        for write, some in ((True, requests[:writes]), (False, requests[writes:])):
            volume = some["length"].astype(float)
            yield Transfers(rank, write, some["begin"], some["end"], volume)
        library.darshan_free(place[0])


def check_requests(requests: Any, seconds: float) -> None:
    """Raise InputError for impossible requests: the library does not detect all damage."""
    begin, end = requests["begin"], requests["end"]
    # Old versions log whole seconds, and the clocks of nodes differ.
    valid = (begin >= -CLOCKS) & (end >= begin) & (end <= seconds + CLOCKS)
    valid &= (requests["length"] >= 0) & (requests["length"] <= MOST) & (requests["offset"] >= 0)
    if not valid.all():
        raise InputError("it has requests with impossible times or sizes; it is damaged")


def _heatmap(log: Log) -> Iterator[Transfers]:
    names = log.backend.log_get_name_records(log.handle)
    interfaces = {name.rpartition(":")[2] for name in names.values() if name.startswith("heatmap:")}
    # POSIX repeats the bytes of MPI-IO.
    counted = {"POSIX", "STDIO"} if "POSIX" in interfaces else interfaces
    while (record := log.backend.log_get_record(log.handle, "HEATMAP")) is not None:
        if str(names.get(record["id"], "")).rpartition(":")[2] not in counted:
            continue
        yield from bin_transfers(record)


def bin_transfers(record: Mapping[str, Any]) -> Iterator[Transfers]:
    """Yield the transfers of a HEATMAP record, one per bin."""
    width = float(record["bin_width_seconds"])
    if not 0 < width < math.inf:
        raise InputError(f"a bin of its heat map is {width:g} s long; it is damaged")
    for write, key in ((True, "write_bins"), (False, "read_bins")):
        bins = np.asarray(record[key])
        some = np.flatnonzero(bins > 0)
        yield Transfers(
            int(record["rank"]), write, some * width, (some + 1) * width, bins[some].astype(float)
        )
