"""How much of a run's bandwidth can be predicted from the state of the file system.

Runs of one configuration differ because of what other jobs do at the time. No model can be better
than identical runs agree with each other: that floor is reported beside every error.

The runs are those of TOKIO's summaries (docs/formats/samples.md), a year of them, each with the
file system's load. They are not Samples: identical runs were made on hundreds of days, and differ
in the load that they met. Cori's header lacks the name of the index column, Mira's has an empty
one; both begin every row with the index.
"""

import csv
import gzip
import io
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from penstock.errors import InputError
from penstock.files import reason
from penstock.learn.write_models.parameters import Floats

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
NEAR = 86400.0
"""Seconds within which two runs count as identical in time."""
TRAINED = 0.7
"""Fraction of the runs, the earliest, that the model is trained with."""
FEWEST = 50
FEWEST_ALIKE = 10
"""Minimum number of earlier runs of a configuration."""


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
    """The file system's load and health and the machine's jobs, as far as they were measured."""

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
    load = {column: _number(row[column]) for column in row if column.startswith(_LOAD)}
    return LoadedRun(
        application=row["darshan_app"].rpartition("/")[2],
        operation=operation,
        shared=not files > 2,
        file_system=_JOB.sub("/", row.get(f"darshan_biggest_{operation}_fs", "")),
        processes=int(float(row["darshan_nprocs"])),
        began=float(row["darshan_start_time"]),
        bytes=max(written, read_),
        bandwidth=bandwidth,
        load={column: value for column, value in load.items() if not math.isnan(value)},
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Median relative errors on the latest runs."""

    floor: float
    """The error of a model that knew everything but the noise of a run: identical runs within a day
    of each other differ by the noise of two."""
    usual: float
    """Error of the configuration's earlier median as a prediction."""
    model: float
    tested: int
    pairs: int


def errors(runs: Sequence[LoadedRun], columns: Sequence[str], *, seed: int) -> Errors:
    """Return the errors of a model that gets these columns of the load, and the floor."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415 - slow to import

    ordered = sorted(runs, key=lambda run: run.began)
    if len(ordered) < FEWEST:
        raise InputError(f"{len(ordered)} runs are too few to learn from; give {FEWEST} or more")
    cut = int(TRAINED * len(ordered))
    earlier: dict[tuple[object, ...], list[float]] = {}
    for run in ordered[:cut]:
        earlier.setdefault(run.configuration, []).append(run.bandwidth)
    usual = {key: np.median(some) for key, some in earlier.items() if len(some) >= FEWEST_ALIKE}
    first = [run for run in ordered[:cut] if run.configuration in usual]
    last = [run for run in ordered[cut:] if run.configuration in usual]
    if not last:
        raise InputError("no configuration was run both before and after; nothing can be tested")
    # A column that was never measured in the earlier runs is useless.
    columns = [name for name in columns if any(name in run.load for run in first)]

    def table(some: Sequence[LoadedRun]) -> tuple[Floats, Floats, Floats]:
        """Return loads, bandwidths, and the configurations' usual bandwidths."""
        loads = np.array([[run.load.get(name, np.nan) for name in columns] for run in some])
        bandwidths = np.array([run.bandwidth for run in some], np.float64)
        return loads, bandwidths, np.array([usual[run.configuration] for run in some])

    boosted = HistGradientBoostingRegressor(
        loss="absolute_error", max_iter=60, learning_rate=0.1, random_state=seed
    )
    loads, bandwidths, expected = table(first)
    boosted.fit(loads, np.log(bandwidths / expected))
    loads, bandwidths, expected = table(last)
    near = _ratios(ordered[cut:])
    return Errors(
        floor=float(np.median(np.abs(near)) / np.sqrt(2)) if near else float("nan"),
        usual=_median_error(expected, bandwidths),
        model=_median_error(expected * np.exp(boosted.predict(loads)), bandwidths),
        tested=len(last),
        pairs=len(near),
    )


def _ratios(ordered: Sequence[LoadedRun]) -> list[float]:
    """Return the log ratio of each run to the identical one before it, if that is recent."""
    before: dict[tuple[object, ...], LoadedRun] = {}
    ratios: list[float] = []
    for run in ordered:
        last = before.get(run.configuration)
        if last is not None and run.began - last.began <= NEAR:
            ratios.append(float(np.log(run.bandwidth / last.bandwidth)))
        before[run.configuration] = run
    return ratios


def _median_error(predicted: Floats, truth: Floats) -> float:
    return float(np.median(np.abs(predicted / truth - 1)))
