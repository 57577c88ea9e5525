"""A year of runs on Cori and Mira (TOKIO): what a model reaches beside what identical runs do."""

import gzip
from pathlib import Path

import numpy as np
import published_data
import pytest

from penstock.errors import InputError
from penstock.learn.write_models import interference
from penstock.learn.write_models.interference import LoadedRun


@pytest.mark.slow
@published_data.either
@pytest.mark.parametrize("machine", ["cori", "mira"])
def test_the_error_stands_beside_the_floor(machine: str, *, full: bool) -> None:
    """Load measured during a run explains it; it is no prediction, as it has the run in it.

    No model loses more than a fifth against the usual bandwidth of the configuration, and none is
    far below the floor, which would mean that it had seen the answer.
    """
    path = published_data.path(f"tokio-{machine}.csv", full=full)
    runs = [run for run in interference.read(path) if run.operation == "write"]
    columns = sorted({name for run in runs for name in run.load})
    known = [name for name in columns if not name.startswith(interference.DURING)]
    before = interference.errors(runs, known, seed=1)
    explained = interference.errors(runs, columns, seed=1)
    print(machine, len(runs), before, explained)
    assert before.tested > (300 if full else 100)
    assert before.pairs > (100 if full else 50)
    for one in (before, explained):
        assert 0.01 < one.floor < 0.2
        assert 0.5 * one.floor <= one.model <= 1.2 * one.usual
    # Node hours of neighbours, while the run ran, tell how long it ran: 0.084 on Cori with them.
    assert before.model >= 0.9 * before.usual


def synthetic_runs(count: int, *, noise: float) -> list[LoadedRun]:
    rng = np.random.default_rng(2)
    runs = []
    for k in range(count):
        load = float(rng.uniform(0, 1))
        runs.append(
            LoadedRun(
                application=str(k % 2),
                operation="write",
                shared=True,
                file_system="scratch",
                processes=64,
                bytes=1e9,
                began=3600.0 * k,
                bandwidth=1000.0 * float(np.exp(-load + rng.normal(0, noise))),
                load={"load": load, "nothing": float(rng.normal())},
            )
        )
    return runs


def test_a_load_that_decides_is_found_and_one_that_does_not_is_not() -> None:
    runs = synthetic_runs(800, noise=0.01)
    assert interference.errors(runs, ["load"], seed=1).model < 0.03
    blind = interference.errors(runs, ["nothing"], seed=1)
    assert blind.model > 0.15
    assert blind.floor == pytest.approx(0.29 / 2**0.5, abs=0.05), "two uniform loads differ by 0.29"


def test_too_few_runs_and_none_to_compare_are_refused() -> None:
    with pytest.raises(InputError, match="10 runs are too few"):
        interference.errors(synthetic_runs(10, noise=0.1), ["load"], seed=1)


TOKIO = """\
_jobid,darshan_app,darshan_nprocs,darshan_start_time,darshan_agg_perf_by_slowest_posix,\
darshan_tot_bytes_written_posix,darshan_tot_bytes_read_posix,darshan_biggest_write_api_files,\
darshan_biggest_write_fs,fs_tot_bytes_written,fshealth_ost_avg_full_pct
0,7,/x/bin/ior,512,1487112035,14764.4,1e12,0,512,/bb/77_striped,2e12,
1,8,/x/bin/ior,512,1487112099,,1e12,0,512,/bb/77_striped,2e12,55.0
"""


def test_a_table_without_the_name_of_its_index_is_read_as_it_is_meant() -> None:
    """Cori's: every row has one value more than the header."""
    (run,) = interference.parse(TOKIO, "cori.csv")
    assert (run.application, run.operation, run.shared) == ("ior", "write", False)
    assert (run.processes, run.bytes, run.bandwidth) == (512, 1e12, 14764.4)
    assert run.file_system == "/bb/striped"
    assert run.load["fs_tot_bytes_written"] == 2e12
    assert "fshealth_ost_avg_full_pct" not in run.load, "it was not measured"
    named = "," + TOKIO
    assert [r.configuration for r in interference.parse(named, "mira.csv")] == [run.configuration]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column 'darshan_agg"),
        ("a,b\n1,2\n", "no column 'darshan_agg"),
        (TOKIO.replace("512,1487112099", "many,1487112099"), None),
        (TOKIO + "2,9\n", "line 4: 2 values for 12 columns"),
        (TOKIO.replace("14764.4", ""), "no runs with a bandwidth"),
        (TOKIO.replace("512,1487112035", "many,1487112035"), "line 2: "),
    ],
)
def test_damaged_tables_of_tokio(text: str, message: str | None) -> None:
    if message is None:
        assert len(interference.parse(text, "t.csv")) == 1
        return
    with pytest.raises(InputError, match=message):
        interference.parse(text, "t.csv")


def test_a_cut_archive_is_told(tmp_path: Path) -> None:
    file = tmp_path / "t.csv.gz"
    file.write_bytes(gzip.compress(TOKIO.encode())[:-12])
    with pytest.raises(InputError, match="cannot be read"):
        interference.read(file)
    file.write_bytes(gzip.compress(TOKIO.encode()))
    assert len(interference.read(file)) == 1


@published_data.either
@pytest.mark.parametrize(("system", "runs", "carried"), [("mira", 2533, 410), ("cori", 11232, 370)])
def test_tokios_own_summaries(system: str, runs: int, carried: int, *, full: bool) -> None:
    read = interference.read(published_data.path(f"tokio-{system}.csv", full=full))
    assert len(read) == (runs if full else carried)
    assert {run.operation for run in read} == {"read", "write"}
