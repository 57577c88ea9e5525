"""The online estimate of w_iter."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import registry
from penstock.core.manager import Manager
from penstock.learn.periods import Period, Prior
from penstock.model import Admit, Job, JobStarted, PhaseBegan, PhaseEnded


class Still:
    """A view of nothing."""

    now = 0.0


def feed(period: Period, iterations: list[tuple[float, float]], *, wait: float = 0.0) -> None:
    """Show the estimator phases of (compute, io), each stretched by a wait for its turn."""
    now = 0.0
    for compute, io in iterations:
        now += compute
        period.began(now)
        now += wait + io
        period.ended(now, io)


def feed_on(period: Period, iterations: list[tuple[float, float]]) -> None:
    """Show more phases, after those that the estimator has seen."""
    now = period._last_end or 0.0
    for compute, io in iterations:
        now += compute
        period.began(now)
        now += io
        period.ended(now, io)


def test_an_estimate_rests_on_earlier_runs_until_the_period_changes() -> None:
    period = Period.live(Prior(w_iter=10.0, observations=7))
    assert (period.iterations, period.earlier_iterations) == (0, 7)
    feed(period, [(9.0, 1.0)] * 3)
    assert (period.iterations, period.earlier_iterations) == (2, 7)
    feed_on(period, [(99.0, 1.0)] * 8)
    assert period.w_iter_ == pytest.approx(100.0)
    assert period.earlier_iterations == 0
    assert Period.live().earlier_iterations == 0


def test_nothing_is_known_before_the_second_phase() -> None:
    period = Period()
    assert period.began(9.0) is None
    period.ended(10.0, 1.0)
    assert period.began(19.0) == 10.0


@pytest.mark.parametrize("wait", [0.0, 500.0])
def test_waiting_for_a_turn_is_not_the_jobs_doing(wait: float) -> None:
    period = Period()
    feed(period, [(9.0, 1.0)] * 10, wait=wait)
    assert period.w_iter_ == pytest.approx(10.0)


def test_it_averages_noise_and_follows_change() -> None:
    rng = np.random.default_rng(1)
    noisy = [(9.0 * x, 1.0 * y) for x, y in rng.uniform(0.7, 1.3, (200, 2))]
    period = Period()
    feed(period, noisy)
    assert period.w_iter_ == pytest.approx(10.0, rel=0.1)
    feed(period, [(90.0, 10.0)] * 60)
    assert period.w_iter_ == pytest.approx(100.0, rel=0.05)


def test_old_observations_fade_by_the_gain() -> None:
    """After many of 10 s, one of 110 s moves the estimate by the gain, a tenth of the step."""
    period = Period()
    feed(period, [(9.0, 1.0)] * 50)
    assert period._last_end is not None
    period.began(period._last_end + 109.0)
    assert period.w_iter_ == pytest.approx(10.0 + 0.1 * 100.0)


class TestLive:
    """The estimator of a running job: a prior, changes, hysteresis."""

    @pytest.mark.parametrize("wait", [0.0, 500.0])
    def test_waiting_for_a_turn_is_not_the_jobs_doing(self, wait: float) -> None:
        period = Period.live()
        feed(period, [(9.0, 1.0)] * 10, wait=wait)
        assert period.w_iter_ == pytest.approx(10.0)

    def test_what_earlier_runs_taught_is_told_at_once(self) -> None:
        period = Period.live(Prior(w_iter=100.0, observations=40))
        assert period.began(5.0) == 100.0
        period.ended(6.0, 1.0)
        period.began(105.0)
        assert period.w_iter_ == pytest.approx(100.0)
        assert period.w_iter_ is not None
        assert period.known == Prior(w_iter=period.w_iter_, observations=41)

    def test_a_run_that_saw_no_iteration_teaches_nothing(self) -> None:
        assert Period.live(Prior(w_iter=100.0)).known is None

    @pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
    def test_a_prior_that_is_no_time_is_ignored(self, wrong: float) -> None:
        assert Period.live(Prior(w_iter=wrong)).began(1.0) is None

    @pytest.mark.parametrize("factor", [10.0, 0.1, 3.0])
    @pytest.mark.parametrize("noise", [0.0, 0.1])
    def test_a_change_is_followed_within_three_iterations(
        self, factor: float, noise: float
    ) -> None:
        """A plain mean needs 1/gain of them. The first iteration after the change is half old."""
        rng = np.random.default_rng(1)
        around = rng.uniform(1 - noise, 1 + noise, 53)
        period = Period.live()
        feed(period, [(9.0 * x, 1.0 * x) for x in around[:50]])
        feed_on(period, [(9.0 * factor * x, 1.0 * factor * x) for x in around[:4]])
        assert period.stable_ == pytest.approx(10.0 * factor, rel=0.2)

    def test_a_wrong_prior_is_a_change_too(self) -> None:
        period = Period.live(Prior(w_iter=1000.0, observations=500))
        feed(period, [(9.0, 1.0)] * 4)
        assert period.stable_ == pytest.approx(10.0)

    @pytest.mark.parametrize("outlier", [100.0, 1e6, 1.0, 1e-6])
    def test_one_outlier_moves_nothing(self, outlier: float) -> None:
        period = Period.live()
        feed(period, [(9.0, 1.0)] * 30)
        feed_on(period, [(outlier - 1e-7, 1e-7), (9.0, 1.0)])
        assert period.stable_ == 10.0
        assert period.w_iter_ == pytest.approx(10.0, rel=0.05)

    def test_noise_is_no_change(self) -> None:
        rng = np.random.default_rng(1)
        period, estimates = Period.live(), []
        for x in rng.lognormal(0.0, 0.3, 2000):
            feed_on(period, [(9.0 * x, 1.0 * x)])
            estimates.append(period.w_iter_ or 10.0)
        assert np.percentile(estimates[100:], [1, 99]) == pytest.approx(10.5, rel=0.35)

    def test_a_job_at_the_border_of_two_sets_stays_in_one(self) -> None:
        """set-10 parts at 10^1.5 s: 31.6 s, plus and minus a tenth, would flip all the time."""
        rng = np.random.default_rng(1)
        period, sets = Period.live(), []
        for x in rng.uniform(0.9, 1.1, 1000):
            feed_on(period, [(31.0 * x, 0.62 * x)])
            sets.append(round(math.log10(period.stable_ or 1.0)))
        assert len(set(sets[20:])) == 1
        plain = Period()
        flips = set()
        for x in rng.uniform(0.9, 1.1, 1000):
            feed_on(plain, [(31.0 * x, 0.62 * x)])
            flips.add(round(math.log10(plain.stable_ or 1.0)))
        assert len(flips) > 1, "the test would pass without hysteresis"

    def test_a_phase_that_was_none_is_forgotten(self) -> None:
        """A small burst in the middle of the compute time: the iteration is still 10 s."""
        period = Period.live()
        feed(period, [(9.0, 1.0)] * 20)
        assert period._last_end is not None
        end = period._last_end
        before = period.w_iter_
        period.began(end + 1.0)
        period.ended(end + 1.01, 0.0)
        assert period.w_iter_ == before
        period.began(end + 9.0)
        assert period.w_iter_ == pytest.approx(10.0)

    @pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf, -5.0, 200.0])
    @pytest.mark.parametrize("io", [math.nan, math.inf, -1.0, 0.0])
    def test_what_is_no_time_is_passed_over(self, time: float, io: float) -> None:
        period = Period.live()
        feed(period, [(9.0, 1.0)] * 20)
        period.began(time)
        period.ended(time, io)
        assert period.w_iter_ == 10.0
        feed_on(period, [(9.0, 1.0)] * 3)
        assert period.w_iter_ == pytest.approx(10.0)

    def test_the_spread_is_that_of_the_iterations(self) -> None:
        rng = np.random.default_rng(1)
        period = Period.live()
        assert period.std is None
        feed(period, [(9.0 * x, 1.0 * x) for x in rng.uniform(0.8, 1.2, 500)])
        assert period.std == pytest.approx(10.0 * 0.4 / 12**0.5, rel=0.4)


@given(st.lists(st.tuples(st.floats(), st.floats()), max_size=60))
def test_nothing_that_is_observed_breaks_it(observed: list[tuple[float, float]]) -> None:
    period = Period.live()
    for time, io in observed:
        estimate = period.began(time)
        assert estimate is None or 0 < estimate < math.inf
        period.ended(time, io)


def test_a_manager_uses_what_a_job_brings_until_it_learns() -> None:
    """set-10 puts a job of an unknown w_iter last: one known from earlier runs is not unknown."""
    view: Any = Still()
    manager = Manager(
        sharing=registry.sharing("set-10"), view=view, learn=lambda job: Period.live()
    )
    job = Job(id="j", serial=0, w_iter=100.0)
    manager.handle(JobStarted(time=0.0, job=job))
    weights = []
    for time in (1.0, 2.0, 3.0):
        actions = manager.handle(PhaseBegan(time=time, job="j", resources=(0,)))
        weights += [action.weight for action in actions if isinstance(action, Admit)]
        manager.handle(PhaseEnded(time=time + 0.1, job="j", resource=0, io=0.1))
    assert weights == [0.01, 1.0, 1.0]
    period = manager.period("j")
    assert period is not None
    assert period.w_iter_ == pytest.approx(1.0)
