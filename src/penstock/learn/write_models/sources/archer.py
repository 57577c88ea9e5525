"""Samples from ARCHER's benchio results: one file for all processes (docs/formats/samples.md).

One row per repetition. Columns: system, run_timestamp, nprocs, local_array_edge, api,
stripe_layout, rep, time_s. Each process writes a cube of double precision numbers, through MPI-IO,
HDF5, NetCDF or one process for all (Serial).
"""

import csv
import io
from collections.abc import Mapping, Sequence

from penstock.errors import InputError, unknown
from penstock.files import reason
from penstock.learn.write_models.samples import Sample
from penstock.model.write import Write

MACHINE = "archer"
SYSTEMS = ("ARCHER", "ARCHER_baseline")
"""The results on ARCHER; the file also has other machines' results."""
CORES = 24
STRIPES: Mapping[str, int] = {"striped": 48, "defstriped": 4, "unstriped": 1}
"""`lfs setstripe -c -1`, the file system's default, and one: ARCHER's file systems have 48 OSTs."""
DOUBLE = 8
_COLUMNS = ("system", "nprocs", "local_array_edge", "api", "stripe_layout", "time_s")


def samples(
    content: str,
    name: str,
    *,
    systems: Sequence[str] = SYSTEMS,
    apis: Sequence[str] = (),
    by_job: bool = False,
    cores: int = CORES,
    stripes: Mapping[str, int] = STRIPES,
) -> tuple[Sample, ...]:
    """Return the samples in the text of file `name`, one per configuration.

    With `by_job` there is one per job: results from different files or times are kept apart.
    Another machine's results need its cores per node and its stripe layouts.
    """
    table = csv.DictReader(io.StringIO(content))
    missing = [column for column in _COLUMNS if column not in (table.fieldnames or ())]
    if missing:
        raise InputError(f"{name} has no column {missing[0]!r}; is it benchio's table?")
    times: dict[tuple[str, Write, str], list[float]] = {}
    try:
        for row in table:
            if row["system"] in systems and (not apis or row["api"] in apis):
                seconds = float(row["time_s"])
                if not 0 < seconds < float("inf"):
                    raise InputError(f"a time of {row['time_s']} s")
                job = f"{row.get('source_path')} {row.get('run_timestamp')}" if by_job else ""
                write = _write(row, cores, stripes)
                times.setdefault((row["api"], write, job), []).append(seconds)
    except (InputError, ValueError, TypeError, csv.Error) as error:
        raise InputError(f"{name}, line {table.line_num}: {reason(error)}") from error
    if not times:
        raise InputError(f"{name} has no results of {', '.join(systems)}")
    return tuple(
        Sample(machine=MACHINE, source=f"benchio, {api}", write=write, times=tuple(runs))
        for (api, write, _), runs in times.items()
    )


def _write(row: Mapping[str, str], cores: int, stripes: Mapping[str, int]) -> Write:
    if row["stripe_layout"] not in stripes:
        raise unknown("stripe layout", row["stripe_layout"], stripes)
    processes, edge = int(row["nprocs"]), int(row["local_array_edge"])
    if processes < 1 or edge < 1:
        raise InputError(f"{processes} processes with cubes of edge {edge}")
    return Write(
        nodes=-(-processes // cores),
        cores=min(cores, processes),
        burst=float(DOUBLE * edge**3),
        shared=True,
        stripe_count=stripes[row["stripe_layout"]],
    )


def tag(sample: Sample) -> str:
    """Return the tag of a sample: the library, and the number of targets."""
    return f"{sample.source}, {sample.write.stripe_count} stripes"
