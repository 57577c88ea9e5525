"""Times that are measured on a busy machine give no verdict."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.campaign import cells
from penstock.campaign.cells import Campaign, Cell
from penstock.campaign.machine_load import LoadMeter, MachineLoad, busiest
from penstock.report.findings import Claim
from penstock.studies.run_study import without_verdict


def stat(*, user: int, idle: int, steal: int) -> str:
    return f"cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 1 2 3\n"


def test_load_is_what_runs_around_a_measurement_and_steal_what_is_taken_during_it() -> None:
    lines: Iterator[str] = iter(
        [
            stat(user=0, idle=0, steal=0),  # sampled before: nothing runs
            stat(user=0, idle=100, steal=0),
            stat(user=0, idle=100, steal=0),  # the measurement: 100 ticks of ours, 5 stolen
            stat(user=100, idle=195, steal=5),
            stat(user=100, idle=195, steal=5),  # sampled after: a quarter of the cores in use
            stat(user=125, idle=270, steal=5),
            stat(user=125, idle=270, steal=5),
        ]
    )
    meter = LoadMeter(read=lambda: next(lines), sleep=lambda _: None)
    assert meter.measured() == MachineLoad(busy=0.25, steal=5 / 200)
    assert next(lines, None) is None


@pytest.mark.parametrize(
    ("busy", "steal", "quiet"), [(0.0, 0.0, True), (0.2, 0.0, False), (0.0, 0.05, False)]
)
def test_quiet_means_neither_other_work_nor_steal(busy: float, steal: float, quiet: bool) -> None:
    assert MachineLoad(busy=busy, steal=steal).quiet is quiet


def test_the_busiest_is_taken_value_by_value() -> None:
    loads = [MachineLoad(busy=0.1, steal=0.0), MachineLoad(busy=0.0, steal=0.3)]
    assert busiest(loads) == MachineLoad(busy=0.1, steal=0.3)
    assert busiest([]) is None


def test_cells_that_measure_time_keep_the_load_others_do_not(tmp_path: Path) -> None:
    def results(*, alone: bool) -> MachineLoad | None:
        directory = tmp_path / str(alone)
        directory.mkdir()
        campaign = Campaign(
            study="s",
            version=1,
            size="quick",
            seed=0,
            cells=[Cell(scenario="a", x=0.0, workload=0)],
            work=_work,
            alone=alone,
        )
        with ThreadPoolExecutor(1) as threads:
            first = cells.run(campaign, directory, executor=threads).machine
            assert cells.run(campaign, directory, executor=threads).machine == first
        return first

    assert results(alone=False) is None
    machine = results(alone=True)
    assert machine is not None
    assert 0 <= machine.busy <= 1
    assert 0 <= machine.steal <= 1


def _work(cell: Cell) -> list[dict[str, str | int | float | None]]:
    return [{"x": cell.x}]


def test_only_claims_by_the_clock_lose_their_verdict() -> None:
    claim = Claim(claim="c", by="packs", paper="2", ours="2", holds=True, why="Rule: equal.")
    timed = Claim(
        claim="c", by="packs", paper="2", ours="2", holds=True, why="Rule: equal.", by_clock=True
    )
    busy = MachineLoad(busy=0.5, steal=0.0)
    assert without_verdict(claim, busy) is claim
    judged = without_verdict(timed, busy)
    assert judged.holds is None
    assert "the machine was busy (at most 50% of the cores" in judged.why
