"""Which sets a site's jobs fall into, and how often sets meet: cases worked out by hand."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from learn.test_profiles import PROFILE

from penstock.errors import InputError
from penstock.learn.profiles import IoPhase
from penstock.sim.evaluate.site_sets import JobTimes, Limits, count, of_profile, of_workload
from penstock.sim.workload import Workload

HOUR = 3600.0


def job(
    phases: Sequence[tuple[float, float]],
    *,
    w_iter: float = 10.0,
    bandwidth: float | None = 1e9,
    end: float | None = None,
) -> JobTimes:
    last = phases[-1][1] if end is None else end
    return JobTimes(begin=0.0, end=last, phases=phases, w_iter=w_iter, bandwidth=bandwidth)


def test_the_papers_limits_are_the_defaults() -> None:
    """Section VIII: 100 MB/s, more than one phase, windows of five hours."""
    assert Limits() == Limits(bandwidth=100e6, phases=2, window=5 * HOUR)


@pytest.mark.parametrize(
    ("w_iter", "number"), [(1.0, 0), (3.1, 0), (3.2, 1), (31.6, 1), (31.7, 2), (1e5, 5), (0.02, -2)]
)
def test_a_set_is_the_rounded_order_of_magnitude(w_iter: float, number: int) -> None:
    assert count([job([(1, 2), (3, 4)], w_iter=w_iter)]).jobs_by_set == {number: 1}


def test_slow_jobs_and_jobs_of_one_phase_are_left_out() -> None:
    two = [(1.0, 2.0), (3.0, 4.0)]
    sets = count(
        [
            job(two, bandwidth=100e6),
            job(two, bandwidth=99e6),
            job(two, bandwidth=None),
            job([(1.0, 2.0)]),
        ]
    )
    assert (sets.jobs, sets.slow, sets.few_phases, sets.unknown_bandwidth) == (2, 1, 1, 1)
    every = count([job([(1.0, 2.0)], bandwidth=1.0)], Limits(bandwidth=0, phases=1))
    assert every.jobs == 1


def test_shared_time_by_hand() -> None:
    """Two jobs of S_1 and one of S_2, of 6, 4 and 181 s of I/O.

    Together: a and b 8 to 9, all three 9 to 10 and 18 to 20, a and c 28 to 30.
    """
    a = job([(8, 10), (18, 20), (28, 30)])
    b = job([(8, 10), (18, 20)])
    c = job([(9, 100), (110, 200)], w_iter=100.0)
    sets = count([a, b, c], Limits(window=50.0))
    assert sets.io_seconds == 6 + 4 + 181
    assert sets.shared * 191 == pytest.approx(2 * 1 + 3 * 1 + 3 * 2 + 2 * 2)
    assert sets.shared_in_set * 191 == pytest.approx(2 * 2 + 2 * 2)
    assert sets.shared_between_sets * 191 == pytest.approx(3 * 1 + 3 * 2 + 2 * 2)
    assert sets.windows_by_sets == {1: 3, 2: 1}
    assert sets.windows_by_sets_in_io == {1: 3, 2: 1}


def test_jobs_that_run_in_one_window_need_not_be_in_io_together() -> None:
    """The paper's count has two sets in the window; at no time are both in I/O."""
    sets = count([job([(1, 2), (11, 12)]), job([(2, 5), (100, 103)], w_iter=98.0)])
    assert sets.windows_by_sets == {2: 1}
    assert sets.windows_by_sets_in_io == {1: 1}
    assert sets.shared == 0.0


def test_windows_without_a_job_do_not_count() -> None:
    early = job([(0.0, 1.0), (8.0, 10.0)])
    late = JobTimes(
        begin=1000.0, end=1010.0, phases=[(1000, 1001), (1009, 1010)], w_iter=9.0, bandwidth=1e9
    )
    sets = count([early, late], Limits(window=10.0))
    assert sets.windows == 2, "a job that ends on an edge is not in the next window"


def site(*, overlap: bool, w_iter: float = 10.0) -> list[JobTimes]:
    """Return 30 jobs that run for twelve hours, in pairs that do I/O together or not."""
    jobs = []
    for k in range(30):
        at = 100.0 * (k // 2 if overlap else k)
        phases = [(at, at + 5.0), (at + 40_000.0, at + 40_005.0)]
        own = w_iter if k % 2 else 10.0
        jobs.append(JobTimes(begin=0.0, end=12 * HOUR, phases=phases, w_iter=own, bandwidth=1e9))
    return jobs


@pytest.mark.parametrize(
    ("jobs", "gain_possible", "text"),
    [
        (site(overlap=True)[:29], None, "Cannot be said of 29 jobs in 12 windows"),
        (site(overlap=False), False, "shared 0.0% of their I/O time"),
        (site(overlap=True), True, "none of it with jobs of other sets"),
        (site(overlap=True, w_iter=1e3), True, "100% with jobs of other sets"),
    ],
)
def test_the_answer_follows_from_the_time_that_jobs_share(
    jobs: list[JobTimes], gain_possible: bool | None, text: str
) -> None:
    answer = count(jobs, Limits(window=HOUR)).answer
    assert answer.gain_possible is gain_possible
    assert text in answer.sentence


def test_too_few_windows_say_nothing() -> None:
    assert count(site(overlap=True), Limits(window=6 * HOUR)).answer.gain_possible is None


def test_no_job_at_all() -> None:
    sets = count([])
    assert (sets.jobs, sets.windows, sets.shared) == (0, 0, 0.0)
    assert sets.answer.gain_possible is None


def test_windows_must_have_a_length_and_not_be_countless() -> None:
    with pytest.raises(InputError, match="no length"):
        Limits(window=0.0)
    with pytest.raises(InputError, match="give a longer window"):
        count([job([(0.0, 1.0), (1e9, 1e9 + 1)])], Limits(window=1.0))


def test_a_profile_of_two_phases_has_a_period_from_end_to_end() -> None:
    phases = tuple(
        IoPhase(began=begin, ended=end, read=0.0, written=5e8) for begin, end in ((5, 10), (35, 40))
    )
    profile = replace(PROFILE, start=1000.0, seconds=50.0, phases=phases, w_iter=None)
    times = of_profile(replace(profile, read=0, written=10**9))
    assert (times.begin, times.end) == (1000.0, 1050.0)
    assert times.phases == [(1005.0, 1010.0), (1035.0, 1040.0)]
    assert times.w_iter == 30.0
    assert times.bandwidth == 1e9 / 10


def test_a_workloads_jobs_are_taken_as_if_alone() -> None:
    workload = Workload(
        compute=[8.0, 8.0, 3.0], io=[2.0, 2.0, 0.0], offsets=[0, 3], release=[100.0]
    )
    (times,) = of_workload(workload)
    assert times.phases == [(108.0, 110.0), (118.0, 120.0)]
    assert (times.begin, times.end) == (100.0, 123.0)
    assert times.w_iter is not None
    assert math.isclose(times.w_iter, 23 / 3)
    assert times.bandwidth is None
