"""Each bandit against its equation."""

import math
from typing import Any

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.model import Context
from penstock.policies._support.arms import Arms
from penstock.policies._support.bandit import TRUST, Bandit
from penstock.policies.tuning.decaying_epsilon import DecayingEpsilon
from penstock.policies.tuning.discounted_ucb import DiscountedUcb
from penstock.policies.tuning.epsilon_greedy import EpsilonGreedy
from penstock.policies.tuning.scaled_ucb1 import ScaledUcb1
from penstock.policies.tuning.sliding_ucb import SlidingUcb
from penstock.policies.tuning.thompson import Thompson
from penstock.policies.tuning.ucb1 import Ucb1

HERE = Context(operation="read", pattern="shared-strided", size=4096, load=4)


def arms_after(bandit: Bandit, columns: list[int], rewards: list[float], *, arms: int = 3) -> Arms:
    """Return arms that saw those rewards in that order."""
    known = bandit.arms([HERE], [bandit.seed], arms)
    for column, reward in zip(columns, rewards, strict=True):
        bandit.observe(known, np.array([column]), np.array([reward]))
    return known


def many(bandit: Bandit, rows: int, arms: int = 7) -> Arms:
    """Return as many fresh bandits as rows, each with draws of its own."""
    return bandit.arms([HERE] * rows, list(range(rows)), arms)


def test_equation_4_1() -> None:
    """Incremental sample averages are the averages, and the scatter is numpy's."""
    rewards = np.random.default_rng(1).normal(1e9, 5e7, 60)
    columns = np.arange(60) % 3
    known = arms_after(Ucb1(), columns.tolist(), rewards.tolist())
    for column in range(3):
        own = rewards[columns == column]
        assert known.mean[0, column] == pytest.approx(own.mean(), rel=1e-12)
        assert known.scatter[0, column] == pytest.approx(own.var() * len(own), rel=1e-9)


COLUMNS, REWARDS = [0, 1, 2, 0, 0], [10.0, 30.0, 20.0, 12.0, 11.0]
TERM = np.sqrt(2 * math.log(5) / np.array([3, 1, 1]))


def test_equation_4_2_as_printed() -> None:
    """Q + sqrt(2 ln t / N) with Q the mean reward itself, in MB/s where the unit is 1e6."""
    known = arms_after(Ucb1(), COLUMNS, REWARDS)
    assert Ucb1().score(known)[0] == pytest.approx(np.array([11.0, 30.0, 20.0]) + TERM)
    known = arms_after(Ucb1(unit=1e6), COLUMNS, [1e6 * reward for reward in REWARDS])
    assert Ucb1(unit=1e6).score(known)[0] == pytest.approx(np.array([11.0, 30.0, 20.0]) + TERM)
    with pytest.raises(InputError, match="unit is 0"):
        Ucb1(unit=0)


def test_equation_4_2_on_a_scale_of_0_to_1() -> None:
    """Q is between the least and the greatest reward of the context."""
    known = arms_after(ScaledUcb1(), COLUMNS, REWARDS)
    scaled = np.array([1.0, 20.0, 10.0]) / 20
    assert ScaledUcb1().score(known)[0] == pytest.approx(scaled + TERM)


def test_as_printed_a_difference_of_a_few_mb_per_second_decides() -> None:
    """200 observations of 400 and 390 MB/s: on a scale the other is tried again, not in MB/s."""
    columns = [0, 1] * 2 + [0] * 196
    rewards = [400.0 - 10 * column for column in columns]
    tried = {
        type(bandit).__name__: int(bandit.pick(arms_after(bandit, columns, rewards, arms=2))[0])
        for bandit in (Ucb1(), ScaledUcb1())
    }
    assert tried == {"Ucb1": 0, "ScaledUcb1": 1}


def test_a_discount_weighs_by_age() -> None:
    rewards = [5.0, 7.0, 4.0, 9.0]
    known = arms_after(Thompson(discount=0.9), [0, 0, 1, 0], rewards)
    weights, own = np.array([0.9**3, 0.9**2, 1.0]), np.array([5.0, 7.0, 9.0])
    mean = (weights @ own) / weights.sum()
    assert known.count[0] == pytest.approx([weights.sum(), 0.9, 0.0])
    assert known.mean[0] == pytest.approx([mean, 4.0, 0.0])


def test_a_window_holds_the_last_alone() -> None:
    rewards = np.random.default_rng(2).normal(1e9, 1e8, 90)
    columns = np.random.default_rng(3).integers(3, size=90)
    known = arms_after(SlidingUcb(window=20), columns.tolist(), rewards.tolist())
    fresh = arms_after(SlidingUcb(window=20), columns[-20:].tolist(), rewards[-20:].tolist())
    for one, other in (
        (known.count, fresh.count),
        (known.mean, fresh.mean),
        (known.scatter, fresh.scatter),
    ):
        assert one == pytest.approx(other, rel=1e-6)
    assert known.seen[0] == 90


def test_an_absurd_reward_leaves_the_window_without_trace() -> None:
    rewards = [1.0, 1e30, 0.1, 0.0, 0.2, 0.3]
    known = arms_after(SlidingUcb(window=3), [0] * 6, rewards, arms=1)
    assert known.mean[0, 0] == pytest.approx(0.5 / 3)
    assert known.scatter[0, 0] == pytest.approx(np.var([0.0, 0.2, 0.3]) * 3)


def test_a_value_that_left_the_window_is_tried_again() -> None:
    bandit = SlidingUcb(window=5, revisit=0)
    known = arms_after(bandit, [0, 1, 1, 1, 1, 1], [1.0, 9.0, 9.0, 9.0, 9.0, 9.0], arms=2)
    assert known.count[0, 0] == 0
    assert bandit.pick(known)[0] == 0


def test_a_shorter_window_forgets_the_oldest() -> None:
    tuner = SlidingUcb(window=50)
    rewards = np.random.default_rng(4).normal(10, 1, 40).tolist()
    for t, reward in enumerate(rewards):
        tuner.learn(HERE, t % 2, reward)
    short, long = SlidingUcb(window=10), SlidingUcb(window=500)
    short.restore(tuner.learned())
    long.restore(tuner.learned())
    (state,) = short.learned()["contexts"]
    assert state["recent"] == rewards[-10:]
    assert state["count"] == [5, 5]
    assert state["mean"] == pytest.approx([np.mean(rewards[-10::2]), np.mean(rewards[-9::2])])
    assert long.learned()["contexts"][0]["recent"] == rewards
    for _ in range(30):  # the next ones push out the right ones
        short.learn(HERE, 0, 3.0)
    assert short.learned()["contexts"][0]["mean"] == pytest.approx([3.0, 0.0])


def test_epsilon_is_how_often_it_explores() -> None:
    """With k values the best is chosen 1 - epsilon + epsilon / k of the time."""
    bandit = EpsilonGreedy(epsilon=0.2)
    known = many(bandit, 20_000, arms=4)
    bandit.observe(known, np.full(20_000, 2), np.ones(20_000))
    assert (bandit.pick(known) == 2).mean() == pytest.approx(0.8 + 0.2 / 4, abs=0.01)


def test_epsilon_greedy_starts_at_zero() -> None:
    """Algorithm 2: after one reward the others, at zero, are met by exploration alone."""
    bandit = EpsilonGreedy(epsilon=0.0)
    known = arms_after(bandit, [1], [1e-3])
    assert [int(bandit.pick(known)[0]) for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize(("seen", "epsilon"), [(4, 1.0), (40, 0.1), (400, 0.05)])
def test_decaying_epsilon_is_rate_k_over_t(seen: int, epsilon: float) -> None:
    bandit = DecayingEpsilon(rate=1.0, floor=0.05)
    known = many(bandit, 20_000, arms=4)
    known.count[:], known.mean[:, 0], known.seen[:] = 1.0, 1.0, seen
    assert (bandit.pick(known) == 0).mean() == pytest.approx(1 - epsilon * 3 / 4, abs=0.01)


def test_thompson_draws_what_it_believes() -> None:
    """Mean, and the noise of one reward over the root of the count, for every arm."""
    bandit = Thompson(discount=1.0, width=1.0, noise=0.1)
    known = many(bandit, 50_000, arms=2)
    for reward in (90.0, 110.0, 90.0, 110.0):
        for column in (0, 1):
            bandit.observe(known, np.full(50_000, column), np.full(50_000, reward))
    drawn = bandit.score(known)
    noise = math.sqrt((800 + TRUST * (0.1 * 100) ** 2) / (6 + TRUST))
    assert drawn.mean(axis=0) == pytest.approx(100, abs=0.1)
    assert drawn.std(axis=0) == pytest.approx(noise / 2, rel=0.02)
    assert abs(np.atleast_2d(np.corrcoef(drawn.T))[0, 1]) < 0.02


def test_discounted_ucb_bounds_by_the_noise() -> None:
    bandit = DiscountedUcb(discount=1.0, width=0.5, noise=0.1)
    known = arms_after(bandit, [0, 0, 1, 2], [90.0, 110.0, 100.0, 100.0])
    noise = math.sqrt((200 + TRUST * 10.0**2) / (1 + TRUST))
    expected = 100 + 0.5 * noise * np.sqrt(2 * math.log(4) / np.array([2, 1, 1]))
    assert bandit.score(known)[0] == pytest.approx(expected)


@pytest.mark.parametrize("bandit", [Thompson(), DiscountedUcb(), SlidingUcb(window=10_000)])
def test_a_neglected_value_is_revisited_in_time(bandit: Any) -> None:
    """However far behind it is: without that a change for the better is never seen."""
    known = many(bandit, 400, arms=2)
    for column in (0, 1):
        bandit.observe(known, np.full(400, column), np.full(400, (1.0, 1e9)[column]))
    waited = np.zeros(400)
    for step in range(1, 300):
        picked = bandit.pick(known)
        waited[(picked == 0) & (waited == 0)] = step
        bandit.observe(known, np.ones(400, dtype=np.int64), np.full(400, 1e9))
    assert (waited > 0).all()
    assert waited.mean() == pytest.approx(bandit.revisit, rel=0.1)
    assert waited.std() > 15, "they must not come together"


def test_revisits_take_no_more_than_their_cost() -> None:
    """Six values that are worth nothing: 110 observations apart they would take 5%."""
    bandit = DiscountedUcb(cost=0.02)
    known = many(bandit, 100)
    lost = 0.0
    for step in range(900):
        picked = bandit.pick(known)
        bandit.observe(known, picked, np.where(picked == 3, 1e9, 1.0))
        lost += (picked != 3).mean() if step >= 300 else 0.0
    assert lost / 600 == pytest.approx(0.02, rel=0.15)


@pytest.mark.parametrize(
    "bandit", [ScaledUcb1, Thompson, DiscountedUcb, SlidingUcb, DecayingEpsilon]
)
def test_the_unit_of_rewards_does_not_matter(bandit: type[Bandit]) -> None:
    noise = np.random.default_rng(5).normal(1, 0.1, 200)

    def choices(unit: float) -> list[int]:
        tuner = bandit(seed=3)
        columns = []
        for drawn in noise:
            value = tuner.choose(HERE, (1, 2, 3))
            tuner.learn(HERE, value, unit * int(value) * float(drawn))
            columns.append(int(value))
        return columns

    assert choices(1.0) == choices(2.0**40)


def test_rewards_that_never_differ() -> None:
    """No noise and no range: nothing is divided by zero, and all values are still met."""
    for bandit in (Ucb1(), Thompson(), DiscountedUcb(), SlidingUcb(), EpsilonGreedy(epsilon=0.5)):
        for reward in (0.0, 5.0):
            for _ in range(60):
                bandit.learn(HERE, bandit.choose(HERE, (1, 2, 3)), reward)
        assert min(bandit.learned()["contexts"][0]["last"]) > 0


def test_draws_are_even_and_independent() -> None:
    known = many(Ucb1(), 20_000, arms=3)
    first = known.draw(0)
    known.seen += 1
    for other in (known.draw(0), known.draw(1)):
        assert other.mean() == pytest.approx(0.5, abs=0.01)
        assert other.std() == pytest.approx(math.sqrt(1 / 12), abs=0.01)
        assert abs(np.corrcoef(first.ravel(), other.ravel())[0, 1]) < 0.02
    assert 0 < first.min() < first.max() < 1


def test_draws_are_the_same_everywhere() -> None:
    """Learned state moves between machines, and so must what follows from it."""
    assert Ucb1().arms([HERE], [0], 2).draw(0)[0].tolist() == [
        0.04302750470190736,
        0.8020273982054968,
    ]


@pytest.mark.parametrize(
    ("bandit", "options"),
    [
        (EpsilonGreedy, {"epsilon": 1.5}),
        (EpsilonGreedy, {"epsilon": math.nan}),
        (DecayingEpsilon, {"rate": -1.0}),
        (DecayingEpsilon, {"floor": 2.0}),
        (Thompson, {"discount": 0.0}),
        (Thompson, {"noise": math.nan}),
        (SlidingUcb, {"window": 1}),
        (SlidingUcb, {"width": -0.1}),
        (DiscountedUcb, {"revisit": -1.0}),
    ],
)
def test_options_out_of_range(bandit: type[Bandit], options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        bandit(**options)


def test_a_value_that_is_no_number() -> None:
    with pytest.raises(InputError, match="not a value"):
        Ucb1().learn(HERE, math.nan, 1.0)
