"""One Darshan log, read with PyDarshan's bindings: records are read one by one and summed up.

This runs in a process of its own (reader.py), because darshan-util trusts what it reads: one path
per line in, one answer per line out, as JSON.
"""

import math
import os
import resource
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from penstock.errors import InputError
from penstock.learn.profiles import Layer, Profile
from penstock.learn.profiles.files import OPERATIONS, FileUse, Use, base_patterns
from penstock.learn.profiles.profile import CLASSES
from penstock.learn.profiles.timeline import w_iter_of
from penstock.sim.formats.darshan.io_times import MOST, Log, best_timeline

LOWEST = ("POSIX", "STDIO", "DFS")
"""Interfaces with no other below them: together they moved all bytes that Darshan counted."""
COUNTED = (*LOWEST, "MPI-IO", "H5D", "PNETCDF_VAR")
EVERYONE = -1
"""The rank of a record that stands for all processes."""
ROOM = 4 << 30
"""Maximum memory in bytes: a damaged log may demand any amount."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The profile of a log, or why it cannot be read."""

    profile: Profile | None = None
    error: str = ""


class Module(NamedTuple):
    """One interface's records, summed up."""

    files: dict[int, FileUse]
    seconds: dict[int, float]
    """Time in calls by rank; for EVERYONE that of the slowest process of each file."""


def profile(path: str, backend: Any) -> Profile:
    """Return the profile of a log; `backend` is darshan.backend.cffi_backend."""
    handle = backend.log_open(path)
    if handle["handle"] == backend.ffi.NULL:
        raise InputError("it is not a Darshan log, or of a version that this PyDarshan cannot read")
    try:
        return _profile(path, Log(handle, backend, backend.log_get_modules(handle)))
    finally:
        backend.log_close(handle)


def _profile(path: str, log: Log) -> Profile:
    job = log.backend.log_get_job(log.handle)
    processes, seconds = int(job["nprocs"]), float(job["run_time"])
    if not 1 <= processes <= 1 << 28 or not 0 <= seconds < 1e10:
        raise InputError(f"it has {processes} processes for {seconds:g} s; it is damaged")
    modules = {name: _module(log, name) for name in COUNTED if name in log.modules}
    lowest = [name for name in LOWEST if name in modules and _moved(modules[name])]
    if not lowest and "MPI-IO" in modules:
        lowest = ["MPI-IO"]
    files = [file for name in lowest for file in modules[name].files.values()]
    timeline, source, nodes, notes = best_timeline(log, files, seconds=seconds, processes=processes)
    phases = timeline.phases() if timeline is not None else ()
    notes += [
        f"the log's {name} is not complete"
        for name in log.modules
        if log.modules[name]["partial_flag"]
    ]
    counts, sizes = _striping(log, modules)
    executable = str(log.backend.log_get_exe(log.handle)).split(maxsplit=1)
    return Profile(
        log=path,
        name=Path(path).stem,
        version=str(job["log_ver"]),
        start=job["start_time_sec"] + job["start_time_nsec"] / 1e9,
        seconds=seconds,
        processes=processes,
        nodes=nodes,
        executable=Path(executable[0]).name if executable else "",
        user=str(job["uid"]),
        read=sum(file.read.bytes for file in files),
        written=sum(file.write.bytes for file in files),
        shared_files=sum(file.shared for file in files if processes > 1),
        own_files=sum(not file.shared or processes == 1 for file in files),
        layers=tuple(_layer(name, modules[name]) for name in modules),
        patterns=base_patterns(files, processes),
        read_sizes=_sizes(file.read for file in files),
        write_sizes=_sizes(file.write for file in files),
        io_seconds=min(_io_seconds([modules[name] for name in lowest]), seconds),
        source=source,
        phases=phases,
        w_iter=w_iter_of(phases),
        heat=timeline.heat if timeline is not None else None,
        stripe_count=counts,
        stripe_size=sizes,
        notes=tuple(notes),
    )


def _moved(module: Module) -> bool:
    return any(file.read.bytes or file.write.bytes for file in module.files.values())


def _layer(name: str, module: Module) -> Layer:
    files = module.files.values()
    return Layer(
        name=name,
        files=len(files),
        read=sum(file.read.bytes for file in files),
        written=sum(file.write.bytes for file in files),
    )


def _sizes(uses: Iterator[Use]) -> tuple[int, ...]:
    total = [0] * len(CLASSES)
    for use in uses:
        total = [a + b for a, b in zip(total, use.sizes, strict=True)]
    return tuple(total)


def _io_seconds(modules: list[Module]) -> float:
    """Return the seconds that the slowest process can have spent in calls."""
    shared = sum(module.seconds.get(EVERYONE, 0.0) for module in modules)
    own: dict[int, float] = {}
    for module in modules:
        for rank, seconds in module.seconds.items():
            if rank != EVERYONE:
                own[rank] = own.get(rank, 0.0) + seconds
    return shared + max(own.values(), default=0.0)


def _module(log: Log, name: str) -> Module:
    record = _Record(name, log.backend)
    module = Module({}, {})
    while (raw := log.backend.log_get_generic_record(log.handle, name)) is not None:
        rank = int(raw["rank"])
        use, seconds = record.read(raw["counters"], raw["fcounters"], rank)
        first = module.files.setdefault(int(raw.get("file_rec_id", raw["id"])), use)
        if first is not use:
            first.add(use)
        module.seconds[rank] = module.seconds.get(rank, 0.0) + seconds
    return module


class _Record:
    """The positions of the counters in a module's records."""

    def __init__(self, name: str, backend: Any) -> None:
        prefix = {"MPI-IO": "MPIIO"}.get(name, name)
        self._whole = _short(backend.counter_names(name), prefix + "_")
        self._real = _short(backend.fcounter_names(name), prefix + "_F_")

    def read(self, whole: Any, real: Any, rank: int) -> tuple[FileUse, float]:
        """Return a record as the use of a file, and the seconds in calls."""
        counts = dict(zip(self._whole, whole.tolist(), strict=True))
        times = dict(zip(self._real, real.tolist(), strict=True))
        spent = ("READ_TIME", "WRITE_TIME", "META_TIME")
        seconds = math.fsum(_time(times.get(name, 0.0)) for name in spent)
        if rank == EVERYONE:
            seconds = _time(times.get("SLOWEST_RANK_TIME", 0.0)) or seconds
        read, write = (_use(operation.upper(), counts, times) for operation in OPERATIONS)
        common: Counter[int] = Counter()
        for k in range(1, 5):
            if (size := counts.get(f"ACCESS{k}_ACCESS", 0)) > 0:
                common[size] += max(counts.get(f"ACCESS{k}_COUNT", 0), 0)
        use = FileUse(
            read=read,
            write=write,
            ranks=set() if rank == EVERYONE else {rank},
            everyone=rank == EVERYONE,
            ordered="CONSEC_READS" in counts,
            strided=sum(max(counts.get(f"STRIDE{k}_COUNT", 0), 0) for k in range(1, 5)),
            common=common,
            slowest=seconds,
        )
        return use, seconds


def _short(names: list[str] | None, prefix: str) -> list[str]:
    return [name.removeprefix(prefix) for name in names or ()]


_CALLS = {
    operation: (
        *(f"{operation}S", f"{operation}XS", f"NB_{operation}S"),
        *(f"{kind}_{operation}S" for kind in ("INDEP", "COLL", "SPLIT")),
    )
    for operation in ("READ", "WRITE")
}
"""Counters of requests, in one module or another."""
_SIZES = {
    operation: [
        (f"SIZE_{operation}_{name}", f"SIZE_{operation}_AGG_{name}")
        for name in (edge.replace("-", "_").replace("1G+", "1G_PLUS") for edge in CLASSES)
    ]
    for operation in ("READ", "WRITE")
}
_BYTES = {"READ": "BYTES_READ", "WRITE": "BYTES_WRITTEN"}


def _use(operation: str, counts: Mapping[str, int], times: Mapping[str, float]) -> Use:
    moved = max(counts.get(_BYTES[operation], 0), 0)
    if moved > MOST:
        raise InputError(f"a file has {moved} bytes; it is damaged")
    sizes = [
        max(counts.get(name, counts.get(collective, 0)), 0)
        for name, collective in _SIZES[operation]
    ]
    begin = times.get(f"{operation}_START_TIMESTAMP", 0.0)
    end = times.get(f"{operation}_END_TIMESTAMP", 0.0)
    timed = moved > 0 and np.isfinite(begin) and np.isfinite(end) and 0 <= begin <= end
    return Use(
        bytes=moved,
        requests=sum(max(counts.get(name, 0), 0) for name in _CALLS[operation]),
        consecutive=max(counts.get(f"CONSEC_{operation}S", 0), 0),
        sequential=max(counts.get(f"SEQ_{operation}S", 0), 0),
        sizes=sizes,
        begin=begin if timed else math.inf,
        end=end if timed else 0.0,
    )


def _time(seconds: float) -> float:
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


def _striping(log: Log, modules: Mapping[str, Module]) -> tuple[int | None, int | None]:
    """Return stripe count and size of the files with the most bytes written, on Lustre."""
    if "LUSTRE" not in log.modules:
        return None, None
    written: Counter[int] = Counter()
    for name in LOWEST:
        for file, use in modules[name].files.items() if name in modules else ():
            written[file] += use.write.bytes
    layouts: Counter[tuple[int, int]] = Counter()
    while (raw := log.backend.log_get_record(log.handle, "LUSTRE", dtype="dict")) is not None:
        for part in raw["components"][:1]:
            counters = part["counters"]
            striping = (
                int(counters["LUSTRE_COMP_STRIPE_COUNT"]),
                int(counters["LUSTRE_COMP_STRIPE_SIZE"]),
            )
            if min(striping) > 0:
                layouts[striping] += written[int(raw["id"])]
    if not layouts or not max(layouts.values()):
        return None, None
    return layouts.most_common(1)[0][0]


def serve() -> None:
    """Answer each path until standard input ends."""
    # Anything that the library prints to standard output would be read as an answer.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    from darshan.backend import cffi_backend  # noqa: PLC0415 - takes seconds, and is an extra

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY or soft > ROOM:
        resource.setrlimit(resource.RLIMIT_AS, (ROOM, hard))
    for line in sys.stdin.buffer:
        path = msgspec.json.decode(line, type=str)
        os.ftruncate(2, 0)
        os.lseek(2, 0, os.SEEK_SET)
        out.write(msgspec.json.encode(answer(path, cffi_backend)) + b"\n")


def answer(path: str, backend: object) -> Answer:
    """Read one log; a damaged one may raise anything anywhere in PyDarshan."""
    try:
        return Answer(profile=profile(path, backend))
    except InputError as error:
        return Answer(error=str(error))
    except MemoryError:
        return Answer(error="it demands more memory than any log needs; it is damaged")
    except Exception as error:
        return Answer(error=f"it cannot be read ({type(error).__name__}: {error}); it is damaged")


if __name__ == "__main__":
    serve()
