"""Workloads in files, read and written by suffix.

.json  one object: `horizon` (seconds) and `jobs`, a list of objects, one job each (as_json)
.npz   the arrays as they are, for large workloads; never pickled (as_npz)
.csv   one row an iteration: job, release, nodes, compute, io (as_tables)
.swf   the Standard Workload Format 2.2; it has no I/O, so that must be made up (as_tables)
.jsonl, .jsonl.gz  the record of a live day, one part of it (recorded)

Whatever is wrong with a file is an InputError that begins with the file's name.
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

Watch = Callable[[int, int], None]
"""Told, now and then, how many jobs of how many are read or written."""

MEMORY_PER_BYTE: Mapping[str, float] = {
    ".json": 2.0,
    ".npz": 1.0,
    ".csv": 2.0,
    ".swf": 2.0,
    ".jsonl": 0.2,
    ".jsonl.gz": 1.0,
}
"""Bytes of memory that reading a byte of a file takes at least."""
WRITTEN = (".json", ".npz")


def read(
    path: Path | str,
    site: Site | None = None,
    *,
    io_ratio: float | None = None,
    w_iter: float | None = None,
    watch: Watch | None = None,
) -> Workload:
    """Read a workload that the site can run.

    The site turns volumes into seconds, and its resources and nodes bound what jobs may use.
    `io_ratio` and `w_iter` are for .swf alone, see `as_tables.read_swf`.
    """
    path, site = Path(path), site or Site()
    check_readable(path)
    with _named(path):
        match suffix(path):
            case ".json":
                workload = json_format.read(path.read_bytes(), site, watch)
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


def write(workload: Workload, path: Path | str, *, watch: Watch | None = None) -> None:
    """Write a workload as .json or .npz; the file appears whole or not at all."""
    path = Path(path)
    check_suffix(path, WRITTEN)
    check(workload, Site(resources=int(workload.resources.max(initial=0)) + 1))
    with replacing(path) as partial:
        if path.suffix.lower() == ".npz":
            npz_format.write(workload, partial)
        else:
            json_format.write(workload, partial, watch)


def suffix(path: Path) -> str:
    """Return the end of a file's name that says its format."""
    parts = [part.lower() for part in path.suffixes]
    return "".join(parts[-2:]) if parts[-1:] == [".gz"] else "".join(parts[-1:])


def check_suffix(path: Path, known: tuple[str, ...] = tuple(MEMORY_PER_BYTE)) -> None:
    """Raise InputError unless the file's name ends in a format we know."""
    if suffix(path) not in known:
        raise InputError(
            f"{str(path)!r} ends in none of {', '.join(known)}; the suffix says the format"
        )


def check_readable(path: Path) -> None:
    """Raise InputError unless the file is there, of a known format and small enough to read."""
    with _named(path):
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
    there = f"{units.show_volume(free)} are available" if free is not None else "memory is short"
    return InputError(
        f"{path} of {units.show_volume(size)} does not fit in memory ({there}); "
        "write large workloads as .npz, or read it on a larger machine"
    )


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Put the file's name in front of what is wrong with it."""
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
