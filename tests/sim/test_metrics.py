"""The metrics' definitions on runs small enough to work out by hand."""

import math
from typing import Any

import numpy as np
import pytest

from penstock import registry
from penstock.errors import InputError
from penstock.model import Site
from penstock.sim import reference
from penstock.sim.engine import simulate
from penstock.sim.generators.io_sets import periodic
from penstock.sim.metrics import measure, measure_jobs
from penstock.sim.run import Run
from penstock.sim.workload import Workload


def record(request: list[float], end: list[float], **workload: Any) -> Run:
    built = Workload(**{"offsets": [0, len(end)], "release": [0.0], **workload})
    return Run(
        workload=built,
        site=Site(),
        request=np.array(request),
        end=np.array(end),
        start=built.release.copy(),
        phase_ends=2 * len(end),
    )


def test_alone_everything_is_perfect() -> None:
    run = simulate(periodic([10.0], [0.2], horizon=100.0), registry.sharing("fair-share"))
    metrics = measure(run, (20.0, 80.0))
    assert metrics.utilization == pytest.approx(0.8)
    assert metrics.utilization == pytest.approx(metrics.utilization_bound)
    assert metrics.max_stretch == metrics.min_yield == metrics.efficiency == pytest.approx(1)
    assert metrics.io_slowdown == pytest.approx(1)


def test_phases_cut_by_the_window_count_in_part() -> None:
    """Compute 0-6, I/O 6-10 of 2 isolated seconds; the window ends at 9."""
    run = record([6.0], [10.0], compute=[6.0], io=[2.0])
    jobs = measure_jobs(run, (3.0, 9.0))
    assert jobs.compute.tolist() == [3.0]
    assert jobs.io.tolist() == [2.0 * 3 / 4]
    assert jobs.iterations.tolist() == [pytest.approx(0.6)]
    assert jobs.stretch.tolist() == [pytest.approx(6 / 4.5)]
    assert jobs.io_slowdown.tolist() == [pytest.approx(4 / 2)]


def test_a_job_counts_while_it_is_there() -> None:
    """Released at 2, ended at 10, window [0, 20]: eight seconds, not twenty."""
    run = record([8.0], [10.0], compute=[6.0], io=[2.0], release=[2.0])
    assert measure_jobs(run, (0.0, 20.0)).present.tolist() == [8.0]
    assert measure(run, (0.0, 20.0)).max_stretch == 1.0


def test_io_slowdown_is_a_geometric_mean_over_jobs_that_do_io() -> None:
    run = record(
        [1.0, 1.0, 9.0],
        [3.0, 9.0, 9.0],
        compute=[1.0, 1.0, 9.0],
        io=[1.0, 1.0, 0.0],
        offsets=[0, 1, 2, 3],
        release=[0.0, 0.0, 0.0],
    )
    assert measure(run, (0.0, 9.0)).io_slowdown == pytest.approx(math.sqrt(2 * 8))


def test_efficiency_weighs_by_nodes() -> None:
    run = record(
        [1.0, 1.0],
        [2.0, 5.0],
        compute=[1.0, 1.0],
        io=[1.0, 1.0],
        offsets=[0, 1, 2],
        release=[0.0, 0.0],
        nodes=[3, 1],
    )
    assert measure(run, (0.0, 5.0)).efficiency == pytest.approx((3 * 2 + 2) / (3 * 2 + 5))


def test_the_default_window_is_the_papers() -> None:
    run = simulate(periodic([10.0], [0.2], horizon=20_000.0), registry.sharing("fair-share"))
    assert measure(run).window == (6000.0, 14_000.0)


def test_blocks_of_jobs_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = periodic([10.0, 20.0, 30.0], [0.3, 0.2, 0.1], horizon=200.0)
    run = simulate(workload, registry.sharing("fair-share"))
    whole = measure(run)
    monkeypatch.setattr("penstock.sim.metrics.JOBS_AT_ONCE", 1)
    assert measure(run) == whole


@pytest.mark.parametrize("window", [(5.0, 5.0), (-1.0, 5.0), (0.0, math.inf), (math.nan, 1.0)])
def test_wrong_windows(window: tuple[float, float]) -> None:
    run = record([6.0], [10.0], compute=[6.0], io=[2.0])
    with pytest.raises(InputError, match="window"):
        measure(run, window)


def test_a_window_without_jobs() -> None:
    with pytest.raises(InputError, match="no job is there"):
        measure(record([6.0], [10.0], compute=[6.0], io=[2.0]), (20.0, 30.0))


def test_waiting_for_nodes_is_stretch_but_not_io() -> None:
    """Released at 0, started at 4, compute to 8, I/O of one second to 10."""
    run = record([8.0], [10.0], compute=[4.0], io=[1.0])
    run.start[:] = 4.0
    metrics = measure(run, (0.0, 10.0))
    assert metrics.utilization == pytest.approx(4 / 6)
    assert metrics.io_slowdown == pytest.approx(2.0)
    assert metrics.max_stretch == pytest.approx(10 / 5)
    assert metrics.efficiency == pytest.approx(5 / 10)


@pytest.mark.parametrize(
    ("compute", "io", "release", "utilization"),
    [([10, 10], [10, 20], [0, 100], 20 / 50), ([10, 1000], [10, 10], [0, 100], 1010 / 1030)],
)
def test_jobs_that_never_wait_have_the_utilization_of_the_bound(
    compute: list[float], io: list[float], release: list[float], utilization: float
) -> None:
    """Of jobs of different length, too, and in every window."""
    jobs = Workload(compute=compute, io=io, offsets=[0, 1, 2], release=release)
    windows = (0.0, 1200.0), (5.0, 115.0)
    marks = [time for window in windows for time in window]
    run = simulate(jobs, registry.sharing("fair-share"), marks=marks)
    assert measure(run, windows[0]).utilization == pytest.approx(utilization)
    for window in windows:
        metrics = measure(run, window)
        assert metrics.utilization_bound == pytest.approx(metrics.utilization)


def test_the_bound_of_utilization_is_above_it_where_jobs_wait() -> None:
    jobs = Workload(compute=[10, 100], io=[10, 10], offsets=[0, 1, 2], release=[0, 0])
    meeting = Workload(compute=[10, 10], io=[10, 20], offsets=[0, 1, 2], release=[0, 0])
    for workload, bound in ((jobs, 110 / 130), (meeting, 20 / 50)):
        metrics = measure(simulate(workload, registry.sharing("fair-share")))
        assert metrics.utilization_bound == pytest.approx(bound)
        assert metrics.utilization <= metrics.utilization_bound
    assert meeting.long_run_bound == pytest.approx(1 - (1 / 2 + 2 / 3) / 2)


@pytest.mark.parametrize("window", [(0.0, 20.0), (10.0, 20.0), (12.0, 30.0), (30.0, 60.0)])
@pytest.mark.parametrize("max_share", [1.0, 0.25])
def test_a_job_alone_has_no_slowdown_wherever_the_window_cuts_its_phases(
    window: tuple[float, float], max_share: float
) -> None:
    """10 s of computation, then I/O that takes 40 s alone."""
    jobs = Workload(
        compute=[10], io=[40 * max_share], offsets=[0, 1], release=[0], max_share=[max_share]
    )
    for simulator in (simulate, reference.simulate):
        run = simulator(jobs, registry.sharing("fair-share"), marks=window)
        metrics = measure(run, window)
        assert metrics.io_slowdown == pytest.approx(1, abs=1e-12)
        assert metrics.utilization == pytest.approx(metrics.utilization_bound)


@pytest.mark.parametrize("window", [(0.0, 12.0), (12.0, 18.0), (18.0, 40.0), (0.0, 40.0)])
def test_a_cut_phase_counts_with_its_own_slowdown(window: tuple[float, float]) -> None:
    """Both ask at 5 for 10 s: `a` transfers until 15, `b` waits until then, and ends at 25.

    Where the window ends while `b` waits it has moved nothing, and its wait counts nevertheless.
    """
    jobs = Workload(compute=[5, 5], io=[10, 10], offsets=[0, 1, 2], release=[0, 0])
    run = simulate(jobs, registry.sharing("exclusive-fcfs"), marks=window)
    assert run.end.tolist() == [15.0, 25.0]
    slowdown = measure_jobs(run, window).io_slowdown
    assert slowdown[1] == pytest.approx(2.0)
    assert math.isnan(slowdown[0]) if window[0] > 15 else slowdown[0] == pytest.approx(1.0)


def test_the_bound_of_utilization_is_that_of_the_work_in_the_window() -> None:
    """Of the whole run it is 110 / 130; until 15 s there are 25 s of computation, 5 s of I/O."""
    jobs = Workload(compute=[10, 100], io=[10, 10], offsets=[0, 1, 2], release=[0, 0])
    run = simulate(jobs, registry.sharing("fair-share"), marks=(0.0, 15.0))
    assert measure(run, (0.0, 15.0)).utilization_bound == pytest.approx(25 / 30)
