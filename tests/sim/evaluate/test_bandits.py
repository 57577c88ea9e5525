"""Tuners on recorded rewards: the evaluation itself, and the bars that ours must reach.

The rewards are synthetic (synthetic_rewards.py).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
from sim.evaluate.synthetic_rewards import improve_worst, reverse_ranks, rewards

from penstock import registry
from penstock.errors import InputError
from penstock.model import Context
from penstock.sim.evaluate.bandits import Evaluation, Learning, Recorded, Rewards

NAMES = sorted(registry.table("tuning"))
OURS = ("discounted-ucb", "sliding-ucb", "thompson")
WORLD = rewards(seed=77)
"""Not the scenarios on which the defaults were chosen."""


@cache
def learning_of(policy: str) -> Learning:
    return Evaluation(policy=policy, repetitions=20).alone(WORLD)


@pytest.mark.parametrize("policy", OURS)
def test_nearly_the_best_fixed_value_after_200_observations(policy: str) -> None:
    """Issue: 0.97 of it on 90% of the scenarios after 200 observations, 0.98 at the end."""
    learning = learning_of(policy)
    assert (learning.after(200) >= 0.97).mean() >= 0.9
    assert (learning.after(400) >= 0.97).mean() >= 0.9
    assert learning.after(400).mean() >= 0.98


@pytest.mark.parametrize("change", [reverse_ranks, improve_worst])
def test_a_change_of_the_best_value_is_followed(change: Callable[[Any], Any]) -> None:
    """Ours is back above 0.95 within 150 observations, and what never forgets is not.

    scaled-ucb1 still tries everything at that time, so that it meets a value that rises; what it
    cannot do is forget that another one was good.
    """
    at, world = 230, rewards(54, seed=77)
    after = change(world)
    performance = {
        policy: Evaluation(policy=policy, observations=at + 150, repetitions=15)
        .changing(world, after, at=at)
        .after(at + 150)
        for policy in (*OURS, "ucb1", "scaled-ucb1", "decaying-epsilon")
    }
    for policy in OURS:
        assert performance[policy].mean() > 0.95, policy
        assert (performance[policy] > 0.95).mean() >= 0.85, policy
    if change is reverse_ranks:
        assert performance["scaled-ucb1"].mean() < 0.95
    assert performance["decaying-epsilon"].mean() < 0.9


@pytest.mark.parametrize("policy", NAMES)
def test_side_by_side_is_one_by_one(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is evaluated is what a controller runs: the same choices, draw by draw."""
    world = rewards(3, seed=1)
    evaluation = Evaluation(policy=policy, observations=60, repetitions=2, seed=5)
    quick, mixed = evaluation.alone(world), evaluation.interleaved(world, bin=20)
    monkeypatch.setattr("penstock.sim.evaluate.bandits.Bandit", type("NoBandit", (), {}))
    slow, slowly_mixed = evaluation.alone(world), evaluation.interleaved(world, bin=20)
    assert np.array_equal(quick.performance, slow.performance)
    assert np.array_equal(mixed.performance, slowly_mixed.performance)


def test_any_tuner_can_be_evaluated(tmp_path: Path) -> None:
    file = tmp_path / "stubborn.py"
    file.write_text(
        "class Stubborn:\n"
        "    def choose(self, context, values): return values[0]\n"
        "    def best(self, context, values): return values[0]\n"
        "    def learn(self, context, value, reward): pass\n"
        "    def learned(self): return {}\n"
        "    def restore(self, learned): pass\n"
    )
    world: dict[str, dict[int | float | str, list[float]]] = {
        "x": {1: [5.0, 7.0], 2: [8.0]},
        "y": {1: [4.0], 2: [2.0]},
    }
    evaluation = Evaluation(policy=f"{file}:Stubborn", observations=20, repetitions=3)
    learning = evaluation.alone(world)
    assert learning.performance.tolist() == [[0.75, 0.75], [1.0, 1.0]]
    assert learning.precision.tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_a_tuner_goes_on_in_simulation_from_what_it_has_learnt_live() -> None:
    """The file of a deployment has contexts; scenarios that are said to be these are known."""
    world: dict[str, dict[int | float | str, list[float]]] = {
        "x": {1: [5.0], 2: [8.0], 3: [1.0]},
        "y": {1: [4.0], 2: [2.0], 3: [1.0]},
    }
    context = Context(operation="read", pattern="shared-strided", size=32768, load=8)
    tuner = registry.policy("tuning", "discounted-ucb", {})
    for _ in range(60):
        value = tuner.choose(context, (1, 2, 3))
        tuner.learn(context, value, world["x"][value][0])
    evaluation = Evaluation(policy="discounted-ucb", observations=20, repetitions=3)
    began = [
        replace(evaluation, learned=learned).alone(world, bin=5, contexts={"x": context})
        for learned in (None, tuner.learned())
    ]
    first = [learning.precision[:, 0].tolist() for learning in began]
    assert first[0][0] <= 0.6, "each of three is tried once, whatever it is"
    assert first[1][0] == 1.0
    assert first[1][1] == first[0][1], "of y nothing was learnt"
    with pytest.raises(InputError):
        replace(evaluation, policy="ucb1", learned=tuner.learned()).alone(world, bin=5)


def test_interleaved_scenarios_are_learnt_as_well_as_alone() -> None:
    """Thesis forwarding, 4.2.2: one bandit a context, so that they do not disturb each other."""
    six = rewards(6, seed=4)
    evaluation = Evaluation(policy="thompson", observations=300, repetitions=60)
    alone = evaluation.alone(six, bin=50)
    mixed = evaluation.interleaved(six)
    assert mixed.performance.shape == (6, 6)
    assert mixed.performance == pytest.approx(alone.performance, abs=0.02)
    assert mixed.precision == pytest.approx(alone.precision, abs=0.15)


def test_precision_rises_with_observations() -> None:
    for policy in NAMES:
        precision = learning_of(policy).precision.mean(axis=0)
        assert precision.shape == (40,)
        assert precision[-5:].mean() > precision[0] + 0.05, policy


def test_a_value_nearly_as_good_as_the_best_is_near_it() -> None:
    """Of 1, 0.99 and 0.9 two are within 0.02 of the best; random choices are near it in 2 of 3."""
    world: Recorded = {"one": {"a": [1.0], "b": [0.99], "c": [0.9]}}
    learning = Evaluation(policy="epsilon-greedy", options={"epsilon": 1.0}).alone(world)
    assert learning.precision.mean() == pytest.approx(1 / 3, abs=0.05)
    assert learning.near_best.mean() == pytest.approx(2 / 3, abs=0.05)


def test_the_seed_decides() -> None:
    world = rewards(4)
    one, same, other = (
        Evaluation(policy="ucb1", observations=50, repetitions=3, seed=seed).alone(world)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(one.performance, same.performance)
    assert not np.array_equal(one.performance, other.performance)


def test_rewards_are_drawn_evenly_from_the_recorded() -> None:
    world = Rewards({"x": {"a": [1.0, 2.0, 3.0, 4.0], "b": [9.0]}})
    uniform = (np.arange(400) + 0.5) / 400
    zeros = np.zeros(400, dtype=np.int64)
    drawn, counts = np.unique(world.draw(zeros, zeros, uniform), return_counts=True)
    assert drawn.tolist() == [1, 2, 3, 4]
    assert set(counts) == {100}
    assert set(world.draw(zeros, zeros + 1, uniform)) == {9.0}


@pytest.mark.parametrize(
    ("world", "message"),
    [
        ({}, "no recorded rewards"),
        ({"x": {}}, "no value"),
        ({"x": {1: []}}, "one or more"),
        ({"x": {1: [1.0, float("nan")]}}, "'x'"),
        ({"x": {1: [-1.0]}}, "below zero"),
        ({"x": {1: ["much"]}}, "numbers"),
        ({"x": {1: [0.0]}}, "above zero"),
        ({"x": {1: [1.0]}, "y": {2: [1.0]}}, "'y'"),
        ({"x": {1: [1.0]}, "y": {1: [1.0], 2: [1.0]}}, "the same"),
    ],
)
def test_rewards_that_cannot_be_used(world: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Evaluation(policy="ucb1").alone(world)  # type: ignore[arg-type]


def test_lengths_that_cannot_be_used() -> None:
    world = rewards(2)
    for evaluation, bin in (
        (Evaluation(policy="ucb1", observations=5), 10),
        (Evaluation(policy="ucb1", repetitions=0), 10),
        (Evaluation(policy="ucb1"), 0),
    ):
        with pytest.raises(InputError, match="give one whole bin"):
            evaluation.alone(world, bin=bin)
    with pytest.raises(InputError, match="before and after"):
        Evaluation(policy="ucb1").changing(world, rewards(3), at=10)


def test_synthetic_worlds_are_what_they_say() -> None:
    mean = Rewards(WORLD).mean
    behind = 1 - mean / mean.max(axis=1, keepdims=True)
    assert mean.shape == (108, 7)
    assert 0.4 < behind.max() < 0.6
    assert (np.sort(behind, axis=1)[3::4, 1] < 0.03).all(), "every fourth has near ties"
    assert (Rewards(reverse_ranks(WORLD)).best == mean.argmin(axis=1)).all()
    assert (Rewards(improve_worst(WORLD)).best == mean.argmin(axis=1)).all()


@pytest.mark.rates
def test_the_full_study_takes_less_than_two_minutes() -> None:
    """108 scenarios, 100 repetitions, 400 observations, 6 policies; here a tenth of it."""
    start = process_time()
    for policy in NAMES:
        Evaluation(policy=policy, repetitions=10).alone(WORLD)
    assert process_time() - start < 12
