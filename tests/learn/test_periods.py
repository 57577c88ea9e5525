"""The online estimate of w_iter."""

import numpy as np
import pytest

from penstock.learn.periods import Period


def feed(period: Period, iterations: list[tuple[float, float]], *, wait: float = 0.0) -> None:
    """Show the estimator phases of (compute, io), each stretched by a wait for its turn."""
    now = 0.0
    for compute, io in iterations:
        now += compute
        period.began(now)
        now += wait + io
        period.ended(now, io)


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
    period.began(period._last_end + 109.0)
    assert period.w_iter_ == pytest.approx(10.0 + 0.1 * 100.0)
