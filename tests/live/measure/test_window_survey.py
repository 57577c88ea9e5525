"""The survey of TWINS windows: its trials, its rewards, and a fresh sample of them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from limits import COMPUTING

from penstock.data import windows
from penstock.errors import InputError
from penstock.live.deployment.emulator import Emulation
from penstock.live.measure import window_survey
from penstock.live.measure.explorer import Cell
from penstock.live.measure.scratch import in_memory, private_state
from penstock.live.measure.window_survey import GRID, WINDOWS, Setting, Trial, WindowRuns
from penstock.model import Observation

MIB = 2**20
TIMEOUT = COMPUTING


def observation(moved: float, *, busy: float = 0.1, requests: int = 4) -> Observation:
    nothing: dict[str, Any] = dict.fromkeys(Observation.__dataclass_fields__, 0)
    fields = {"seconds": 0.1, "busy": busy, "reads": requests, "read_bytes": int(moved * MIB)}
    return Observation(**nothing | fields)


def test_every_scenario_has_every_window_and_most_processes_come_first() -> None:
    trials = window_survey.trials(GRID, 1)
    assert len(trials) == len(set(trials)) == 3 * 2 * 2 * 2 * 3 * 7 + 2 * 2 * 2 * 3 * 2
    by_cell: dict[Cell, set[Setting]] = {}
    for one in trials:
        by_cell.setdefault(one.cell, set()).add(one.setting)
    for cell, settings in by_cell.items():
        assert {Setting("twins", w) for w in WINDOWS} <= settings
        assert ("strided" in cell.phase) == (Setting("fifo", 1e-3) in settings)
    ranks = [one.cell.processes for one in trials]
    assert ranks == sorted(ranks, reverse=True)


def test_a_reward_is_the_mean_of_busy_io_nodes_from_the_first_byte_on() -> None:
    """An idle I/O node is not slow; a connected one without data has not begun."""
    connected, idle = observation(0), observation(0, busy=0, requests=0)
    first = [connected, *(observation(k) for k in range(1, 9))]
    second = [idle, idle, *(observation(k) for k in range(3, 9)), idle]
    rewards = window_survey.rewards([first, second])
    assert rewards == pytest.approx([35, 45, 55])


def test_the_disks_are_slow_for_reads_that_jump() -> None:
    disks = Emulation.parse("disks")
    assert (disks.targets, disks.count, disks.stripe) == (4, 4, 64 * 2**10)
    assert disks.switch == 0 < (disks.read_switch or 0)
    assert Emulation.parse("disks,switch=1ms").switch == pytest.approx(1e-3)


@pytest.mark.rates
@pytest.mark.slow
def test_long_windows_slow_writes_as_in_the_shipped_measurements() -> None:
    """A fresh sample of the shipped measurements."""
    grid = msgspec.structs.replace(GRID, seconds=1.2, keep=5)
    cell = Cell("shared-strided-write-32K", 16, 4, 0)
    with (
        in_memory() as root,
        private_state() as state,
        WindowRuns(
            grid, root=root, state=state, emulate=window_survey.EMULATED_STORAGE, seed=1
        ) as runs,
    ):
        short, long = (runs.measure(Trial(cell, Setting("twins", w))) for w in (500e-6, 8e-3))
    then = windows.by_window(windows.shipped())[short.scenario]
    assert long.mean < 0.8 * short.mean
    assert short.mean == pytest.approx(sum(then[500e-6]) / len(then[500e-6]), rel=0.25)


def test_a_file_of_rewards_reads_back(tmp_path: Path) -> None:
    one = windows.shipped()[0]
    windows.write(tmp_path / "some.csv", [one])
    assert windows.read(tmp_path / "some.csv") == (one,)


@pytest.mark.parametrize("fault", ["nan", "-1", "", "fast"])
def test_a_damaged_file_is_refused_with_its_line(tmp_path: Path, fault: str) -> None:
    file = tmp_path / "some.csv"
    windows.write(file, windows.shipped()[:2])
    lines = file.read_text().splitlines()
    lines[2] = lines[2].rpartition(",")[0] + "," + fault
    file.write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"some\.csv, line 3: .*measure again"):
        windows.read(file)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--processes", "0"), "1 or more"),
        (("--processes", "many"), "--processes"),
        (("--windows", "500 us,2 h"), "--windows"),
        (("--seconds", "0.5", "--keep", "9"), "give longer runs"),
    ],
)
def test_invalid_options_are_refused_before_anything_runs(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    command = [sys.executable, "-m", "penstock.cli", "tuner", "measure", *words]
    command += ["--out", str(tmp_path / "some.csv")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert ended.returncode == 2
    assert message in ended.stderr


def test_finished_runs_are_not_measured_again(tmp_path: Path) -> None:
    """With all runs in the journal, the command has nothing to run and writes the file."""
    out = tmp_path / "few.csv"
    command = [sys.executable, "-m", "penstock.cli", "tuner", "measure", "--out", str(out)]
    command += ["--processes", "1", "--io-nodes", "1", "--emulate", "nothing-of-the-kind", "--json"]
    grid = msgspec.structs.replace(GRID, processes=(1,), io_nodes=(1,))
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert ended.returncode == 2, "an emulation that is not there"
    with (tmp_path / "few.csv.jsonl").open("a") as journal:
        for one in window_survey.trials(grid, 1):
            setting = f"{one.setting.scheduler}-{round(one.setting.window * 1e6)}"
            row = windows.RewardSeries(
                scenario=window_survey.scenario(grid, one.cell),
                scheduler=one.setting.scheduler,
                window=one.setting.window,
                rewards=(1.0, 2.0),
            ).row
            entry = {"cell": [f"{one.cell.phase} {setting}", 1.0, 1], "seconds": 1.0, "rows": [row]}
            journal.write(json.dumps(entry) + "\n")
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["runs"] == len(windows.read(out)) == 12 * 7 + 8
