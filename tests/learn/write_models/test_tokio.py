"""A year of runs on Cori and Mira (TOKIO): what a model reaches beside what identical runs do."""

import csv
import gzip
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.learn.write_models import interference
from penstock.learn.write_models.interference import Run

FOLDER = Path(__file__).parents[4] / "shared/data/tokio"
FILES = {
    "cori": "cori-summaries_2017-02-14-2018-02-15.csv.gz",
    "mira": "mira-summaries_2017-02-14_2018-02-15.csv.gz",
}
TARGET = "darshan_agg_perf_by_slowest_posix"
BEFORE = ("fshealth_ost_avg_full_pct", "fshealth_ost_most_full_pct", "fshealth_ost_overloaded_pct")
"""Known before a run; with where it runs and who runs beside it."""
BESIDE = ("jobsdb_concurrent_nodes", "jobsdb_concurrent_jobs", "topology_job_max_radius")


def of(machine: str) -> list[Run]:
    """Return the runs that wrote; skip where the files are absent.

    A configuration: application, file system, processes, volume, files and interface.
    """
    path = FOLDER / FILES[machine]
    if not path.exists():
        pytest.skip("the measured data are not beside this checkout (../shared/data)")
    return _read(path)


@cache
def _read(path: Path) -> list[Run]:
    with gzip.open(path, "rt", newline="") as lines:
        table = csv.reader(lines)
        header, *rows = table
    if len(rows[0]) == len(header) + 1:
        header = ["", *header]  # Cori's header lacks the index column
    found = (dict(zip(header, row, strict=True)) for row in rows)
    return [_run(row) for row in found if _wrote(row)]


def _wrote(row: dict[str, str]) -> bool:
    written = float(row["darshan_biggest_write_api_bytes"] or 0)
    return written > 2**30 and float(row[TARGET] or 0) > 0


def _run(row: dict[str, str]) -> Run:
    loads = {k: float(v) for k, v in row.items() if k.startswith(PREFIXES) and _number(v)}
    return Run(
        configuration=(
            row["darshan_app"].rpartition("/bin")[2],
            row["_file_system"],
            row["darshan_nprocs"],
            f"{float(row['darshan_biggest_write_api_bytes']):.2g}",
            row["darshan_biggest_write_api_files"],
            row["darshan_biggest_write_api"],
        ),
        began=float(row["darshan_start_time"]),
        bandwidth=float(row[TARGET]),
        load=loads,
    )


PREFIXES = ("fs_tot_", "fs_ave_", "fs_max_", "fshealth_ost_", "jobsdb_", "topology_")


def _number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("machine", FILES)
def test_the_error_stands_beside_the_floor(machine: str) -> None:
    """Load measured during a run explains it; it is no prediction, as it has the run in it.

    No model loses more than a fifth against the usual bandwidth of the configuration, and none is
    far below the floor, which would mean that it had seen the answer.
    """
    runs = of(machine)
    during = sorted({name for run in runs for name in run.load if name.startswith("fs_")})
    before = interference.reached(runs, [*BEFORE, *BESIDE], seed=1)
    explained = interference.reached(runs, [*during, *BEFORE, *BESIDE], seed=1)
    print(machine, len(runs), before, explained)
    assert before.tested > 300
    assert before.pairs > 100
    for one in (before, explained):
        assert 0.01 < one.floor < 0.2
        assert 0.5 * one.floor <= one.model <= 1.2 * one.usual


def made(count: int, *, noise: float) -> list[Run]:
    rng = np.random.default_rng(2)
    found = []
    for k in range(count):
        load = float(rng.uniform(0, 1))
        found.append(
            Run(
                configuration=(str(k % 2),),
                began=3600.0 * k,
                bandwidth=1000.0 * float(np.exp(-load + rng.normal(0, noise))),
                load={"load": load, "nothing": float(rng.normal())},
            )
        )
    return found


def test_a_load_that_decides_is_found_and_one_that_does_not_is_not() -> None:
    runs = made(800, noise=0.01)
    assert interference.reached(runs, ["load"], seed=1).model < 0.03
    blind = interference.reached(runs, ["nothing"], seed=1)
    assert blind.model > 0.15
    assert blind.floor == pytest.approx(0.29 / 2**0.5, abs=0.05), "two uniform loads differ by 0.29"


def test_too_few_runs_and_none_to_compare_are_refused() -> None:
    with pytest.raises(InputError, match="10 runs are too few"):
        interference.reached(made(10, noise=0.1), ["load"], seed=1)
