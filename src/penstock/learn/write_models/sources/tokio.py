"""A year of runs, each with the file system's load (TOKIO's summaries; docs/formats/samples.md).

These are not Samples: identical runs were made on hundreds of days, and differ in the load that
they met. Cori's header lacks the name of the index column, Mira's has an empty one; both begin
every row with the index.
"""

import csv
import gzip
import io
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from penstock.errors import InputError
from penstock.files import reason

MOST = 2**30
"""Maximum size of an unpacked table in bytes."""
RATE = "darshan_agg_perf_by_slowest_posix"
_NEEDED = (RATE, "darshan_app", "darshan_nprocs", "darshan_start_time")
_BYTES = ("darshan_tot_bytes_written_posix", "darshan_tot_bytes_read_posix")
_JOB = re.compile(r"/\d+_")
DURING = ("fs_", "jobsdb_")
"""Prefixes of columns that are summed or counted over the run itself: they contain its duration, so
that "jobsdb_concurrent_nodehrs" gives a model the answer."""
_LOAD = (*DURING, "fshealth_", "topology_")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRun:
    """One run, its bandwidth, and the state of the file system meanwhile."""

    application: str
    operation: str
    """The predominant one: "write" or "read"."""
    shared: bool
    """One file, or one for each process."""
    file_system: str
    """Without the job numbers in the names of burst buffers."""
    processes: int
    began: float
    """Darshan's, in seconds since 1970: the other times of Mira's table are wrong by hours."""
    bytes: float
    bandwidth: float
    """MiB/s by the slowest process."""
    load: Mapping[str, float]
    """Columns of the file system's load and health and of the machine's jobs; NaN if missing."""

    @property
    def configuration(self) -> tuple[str, str, bool, str, int, float]:
        """Return what identical runs have in common."""
        kind = (self.application, self.operation, self.shared, self.file_system)
        return (*kind, self.processes, self.bytes)


def read(path: Path) -> tuple[LoadedRun, ...]:
    """Read a table, packed or not; runs without a bandwidth are left out."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            with gzip.open(io.BytesIO(content)) as packed:
                content = packed.read(MOST + 1)
        if len(content) > MOST:
            raise InputError(f"{path} is larger than any of TOKIO's tables; give another")
        return parse(content.decode(), str(path))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from error


def parse(content: str, name: str) -> tuple[LoadedRun, ...]:
    """Return the runs in the text of the table `name`."""
    rows = csv.reader(io.StringIO(content))
    head = next(rows, [])
    first = next(rows, [])
    if len(first) == len(head) + 1:
        head = ["", *head]
    missing = [column for column in _NEEDED if column not in head]
    if missing:
        raise InputError(f"{name} has no column {missing[0]!r}; is it one of TOKIO's summaries?")
    runs = []
    try:
        for row in chain([first], rows):
            if len(row) != len(head):
                raise InputError(f"{len(row)} values for {len(head)} columns")
            run = _run(dict(zip(head, row, strict=True)))
            runs += [] if run is None else [run]
    except (InputError, ValueError, csv.Error) as error:
        raise InputError(f"{name}, line {rows.line_num}: {reason(error)}") from error
    if not runs:
        raise InputError(f"{name} has no runs with a bandwidth")
    return tuple(runs)


def _run(row: Mapping[str, str]) -> LoadedRun | None:
    bandwidth = _number(row[RATE])
    if not bandwidth > 0:
        return None
    written, read_ = (_number(row.get(column, "")) for column in _BYTES)
    operation = "write" if written >= read_ else "read"
    files = _number(row.get(f"darshan_biggest_{operation}_api_files", ""))
    return LoadedRun(
        application=row["darshan_app"].rpartition("/")[2],
        operation=operation,
        shared=not files > 2,
        file_system=_JOB.sub("/", row.get(f"darshan_biggest_{operation}_fs", "")),
        processes=int(float(row["darshan_nprocs"])),
        began=float(row["darshan_start_time"]),
        bytes=max(written, read_),
        bandwidth=bandwidth,
        load={column: _number(row[column]) for column in row if column.startswith(_LOAD)},
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
