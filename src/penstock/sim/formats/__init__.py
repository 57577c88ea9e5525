"""Workload files; the suffix of a file's name decides its format.

.json  one object: `horizon` (seconds) and `jobs`, a list with one object per job (json_format)
.npz   the arrays themselves, for large workloads; never pickled (npz_format)
.csv   one row per iteration: job, release, nodes, compute, io (table_formats)
.swf   the Standard Workload Format 2.2; it has no I/O, which is made up (table_formats)
.jsonl, .jsonl.gz  one file of a live controller's record (from_record)

Every fault of a file is an InputError that begins with the file's name.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock import units
from penstock.errors import InputError
from penstock.files import reason, replacing
from penstock.model import Site
from penstock.sim.checks import check
from penstock.sim.formats import free_memory, from_record, json_format, npz_format, table_formats
from penstock.sim.workload import Workload

Report = Callable[[int, int], None]
"""Called now and then with the number of jobs read or written, and of all jobs."""

MEMORY_PER_BYTE: Mapping[str, float] = {
    ".json": 2.0,
    ".npz": 1.0,
    ".csv": 2.0,
    ".swf": 2.0,
    ".jsonl": 0.2,
    ".jsonl.gz": 1.0,
}
"""Bytes of memory needed per byte of a file, at least."""
WRITABLE = (".json", ".npz")


def read(
    path: Path | str,
    site: Site | None = None,
    *,
    io_ratio: float | None = None,
    w_iter: float | None = None,
    report: Report | None = None,
) -> Workload:
    """Read a workload, and check that the site can run it.

    The site's bandwidth turns volumes into seconds; its resources and nodes limit the jobs.
    `io_ratio` and `w_iter` are for .swf alone, see `table_formats.read_swf`.
    """
    path, site = Path(path), site or Site()
    check_readable(path)
    with file_errors(path):
        match suffix(path):
            case ".json":
                workload = json_format.read(path.read_bytes(), site, report)
            case ".npz":
                workload = npz_format.read(path)
            case ".csv":
                workload = table_formats.read_csv(path, site)
            case ".jsonl" | ".jsonl.gz":
                workload = from_record.read(path, site)
            case _:
                workload = table_formats.read_swf(path, site, io_ratio=io_ratio, w_iter=w_iter)
        if workload.horizon is not None and not 0 < workload.horizon < float("inf"):
            raise InputError(f"horizon is {workload.horizon:g}; give a positive number of seconds")
        check(workload, site)
    return workload


def write(workload: Workload, path: Path | str, *, report: Report | None = None) -> None:
    """Write a workload as .json or .npz; the file appears whole or not at all."""
    path = Path(path)
    check_suffix(path, WRITABLE)
    check(workload, Site(resources=int(workload.resources.max(initial=0)) + 1))
    with replacing(path) as partial:
        if path.suffix.lower() == ".npz":
            npz_format.write(workload, partial)
        else:
            json_format.write(workload, partial, report)


def suffix(path: Path) -> str:
    """Return the end of a file's name that decides its format."""
    parts = [part.lower() for part in path.suffixes]
    return "".join(parts[-2:]) if parts[-1:] == [".gz"] else "".join(parts[-1:])


def check_suffix(path: Path, allowed: tuple[str, ...] = tuple(MEMORY_PER_BYTE)) -> None:
    """Raise InputError unless the file's name ends in an allowed suffix."""
    if suffix(path) not in allowed:
        raise InputError(
            f"{str(path)!r} ends in none of {', '.join(allowed)}; the suffix decides the format"
        )


def check_readable(path: Path) -> None:
    """Raise InputError unless the file exists, has a known format and fits in memory."""
    with file_errors(path):
        status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path} is a directory; give a workload file in it")
    check_suffix(path)
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is not a regular file; copy its content into one")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path}: permission denied; make it readable ('chmod u+r')")
    if status.st_size == 0:
        raise InputError(f"{path} is empty; write one with 'penstock generate io-sets --out FILE'")
    need, free = status.st_size * MEMORY_PER_BYTE[suffix(path)], free_memory.available()
    if free is not None and need > free:
        raise _too_large(path, status.st_size, free)


def _too_large(path: Path, size: int, free: int | None) -> InputError:
    memory = f"{units.show_volume(free)} are available" if free is not None else "memory is short"
    return InputError(
        f"{path} of {units.show_volume(size)} does not fit in memory ({memory}); "
        "write large workloads as .npz, or read it on a larger machine"
    )


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn every fault of a file into an InputError that begins with its name."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(str(path)):
            raise
        raise InputError(f"{path}: {error}") from error
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; check the name") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error).lower()}") from error
    except ValueError as error:
        if "null" not in str(error):
            raise
        raise InputError(f"{str(path)!r} cannot be a file's name: {error}") from error
    except MemoryError as error:
        raise _too_large(path, path.stat().st_size, free_memory.available()) from error
