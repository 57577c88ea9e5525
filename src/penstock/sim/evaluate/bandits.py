"""How well a tuner learns, on recorded rewards (thesis forwarding, 4.2.2).

A reward is drawn from those recorded for the value in the scenario: no I/O is done. The policy is
the object that a controller uses. Bandits (policies/_support/bandit.py) run with all scenarios and
repetitions at once; any other Tuner is called for one observation at a time. Both make the same
choices.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock import registry
from penstock.errors import InputError
from penstock.model import Context, Value
from penstock.policies._support.asking import ask
from penstock.policies._support.bandit import Bandit
from penstock.policies.base import Tuner

Recorded = Mapping[str, Mapping[Value, ArrayLike]]
"""Rewards by scenario and value."""
TIE = 0.02
"""Values whose mean reward is below the best by this part at most are nearly as good."""
Floats = NDArray[np.float64]
Columns = NDArray[np.int64]


class Rewards:
    """Recorded rewards of scenarios that have the same values: arrays of scenario and value."""

    def __init__(self, recorded: Recorded) -> None:
        self.scenarios = tuple(recorded)
        if not self.scenarios:
            raise InputError("there are no recorded rewards to evaluate tuning on")
        self.values = tuple(recorded[self.scenarios[0]])
        if not self.values:
            raise InputError(f"scenario {self.scenarios[0]!r} has rewards of no value")
        for name in self.scenarios:
            if set(recorded[name]) != set(self.values):
                raise InputError(
                    f"scenario {name!r} has rewards of {list(recorded[name])}, "
                    f"{self.scenarios[0]!r} of {list(self.values)}; give all of them the same"
                )
        table = [
            [_series(name, value, recorded[name][value]) for value in self.values]
            for name in self.scenarios
        ]
        self.length = np.array([[len(series) for series in row] for row in table])
        self.mean = np.array([[series.mean() for series in row] for row in table])
        for name, best in zip(self.scenarios, self.mean.max(axis=1), strict=True):
            if not best > 0:
                raise InputError(f"scenario {name!r}: no value has rewards above zero")
        self.best = self.mean.argmax(axis=1)
        """The column of the best fixed value, per scenario."""
        self._rewards = np.zeros((*self.length.shape, int(self.length.max())))
        for s, row in enumerate(table):
            for v, series in enumerate(row):
                self._rewards[s, v, : len(series)] = series

    def draw(self, scenarios: Columns, columns: Columns, uniform: Floats) -> Floats:
        """Draw one of the recorded rewards for each scenario and column."""
        place = (uniform * self.length[scenarios, columns]).astype(np.int64)
        rewards: Floats = self._rewards[scenarios, columns, place]
        return rewards

    def contexts(self, contexts: Mapping[str, Context]) -> list[Context]:
        """Return the scenarios' contexts, with a substitute for those without one."""
        substitutes = {
            name: Context(operation="mixed", pattern=name, size=1, load=1)
            for name in self.scenarios
        }
        return [contexts.get(name, own) for name, own in substitutes.items()]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learning:
    """The results of a policy per scenario and bin of observations, as means of repetitions."""

    scenarios: tuple[str, ...]
    bin: int
    precision: Floats
    """Share of the choices that were the best fixed value."""
    near_best: Floats
    """Share of the choices that were the best fixed value, or worse by TIE at most."""
    performance: Floats
    """Mean reward of the chosen values, as a share of the best fixed value's."""

    def after(self, observations: int) -> Floats:
        """Return the performance per scenario in the last bin that is complete by then."""
        performance: Floats = self.performance[:, observations // self.bin - 1]
        return performance


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What is evaluated: a tuning policy, by name and options, and for how long."""

    policy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    observations: int = 400
    """Observations per scenario."""
    repetitions: int = 100
    seed: int = 0
    learned: Mapping[str, Any] | None = None
    """Initial state of the tuner, learned by one of its kind, here or in a deployment."""

    def alone(
        self,
        recorded: Recorded,
        *,
        bin: int = 10,
        contexts: Mapping[str, Context] = MappingProxyType({}),
    ) -> Learning:
        """Evaluate the policy on each scenario alone; `contexts` are those of scenarios."""
        same = self.observations
        return self.changing(recorded, recorded, at=same, bin=bin, contexts=contexts)

    def changing(
        self,
        before: Recorded,
        after: Recorded,
        *,
        at: int,
        bin: int = 10,
        contexts: Mapping[str, Context] = MappingProxyType({}),
    ) -> Learning:
        """Evaluate it alone, with the rewards of `after` from observation `at` on."""
        first, then = Rewards(before), Rewards(after)
        if (first.scenarios, first.values) != (then.scenarios, then.values):
            raise InputError("scenarios and values must be the same before and after the change")
        worlds = [first if t < at else then for t in range(self.observations)]
        lanes = np.arange(self.repetitions * len(first.scenarios))
        return self._run(worlds, ((t, lanes) for t in range(self.observations)), bin, contexts)

    def interleaved(self, recorded: Recorded, *, bin: int = 50) -> Learning:
        """Evaluate one tuner on all scenarios, in random order and equally often."""
        rewards = Rewards(recorded)
        scenarios = len(rewards.scenarios)
        order = np.tile(np.repeat(np.arange(scenarios), self.observations), (self.repetitions, 1))
        order = np.random.default_rng([self.seed, 1]).permuted(order, axis=1)
        lanes = np.arange(self.repetitions) * scenarios
        counts = np.zeros(self.repetitions * scenarios, dtype=np.int64)

        def steps() -> Iterator[tuple[Columns, Columns]]:
            for step in range(order.shape[1]):
                rows = lanes + order[:, step]
                yield counts[rows], rows
                counts[rows] += 1

        return self._run([rewards] * self.observations, steps(), bin, {})

    def _run(
        self,
        worlds: Sequence[Rewards],
        steps: Iterable[tuple[Any, Columns]],
        bin: int,
        contexts: Mapping[str, Context],
    ) -> Learning:
        """Run the steps. A lane is one scenario of one repetition; a step has some lanes."""
        if not 1 <= bin <= self.observations or self.repetitions < 1:
            raise InputError(
                f"{self.observations} observations in bins of {bin}, {self.repetitions} "
                f"repetitions: give one whole bin and one repetition at least"
            )
        names = worlds[0].scenarios
        lanes = np.arange(self.repetitions * len(names))
        scenario = lanes % len(names)
        learner = self._learner(worlds[0], worlds[0].contexts(contexts))
        chance = np.random.default_rng([self.seed, 0])
        choices = np.zeros((len(lanes), self.observations), dtype=np.int8)
        for t, rows in steps:
            columns = learner.pick(rows)
            world = worlds[t if isinstance(t, int) else 0]
            rewards = world.draw(scenario[rows], columns, chance.random(len(rows)))
            learner.learn(rows, columns, rewards)
            choices[rows, t] = columns
        return _binned(worlds, choices.reshape(self.repetitions, len(names), -1), bin)

    def _learner(self, rewards: Rewards, contexts: Sequence[Context]) -> "_Vectorised | _OneByOne":
        seeds = [self.seed + r for r in range(self.repetitions)]
        cls = registry.load("tuning", self.policy)
        if issubclass(cls, Bandit) and self.learned is None:
            bandit: Bandit = registry.policy("tuning", self.policy, self.options)
            return _Vectorised(bandit, rewards, contexts, seeds)
        seeded = "seed" in registry.options(cls)
        tuners: list[Tuner] = [
            registry.policy(
                "tuning", self.policy, {**self.options, "seed": s} if seeded else self.options
            )
            for s in seeds
        ]
        if self.learned is not None:
            for tuner in tuners:
                tuner.restore(self.learned)
        return _OneByOne(tuners, rewards, contexts)


class _Vectorised:
    """One bandit policy with one row of arms per lane."""

    def __init__(
        self,
        bandit: Bandit,
        rewards: Rewards,
        contexts: Sequence[Context],
        seeds: Sequence[int],
    ) -> None:
        self._bandit = bandit
        self._arms = bandit.arms(
            [context for _ in seeds for context in contexts],
            [seed for seed in seeds for _ in contexts],
            len(rewards.values),
        )
        self._part = self._arms

    def pick(self, rows: Columns) -> Columns:
        whole = len(rows) == len(self._arms.seen)
        self._part = self._arms if whole else self._arms.select_rows(rows)
        return self._bandit.pick(self._part)

    def learn(self, rows: Columns, columns: Columns, rewards: Floats) -> None:
        self._bandit.observe(self._part, columns, rewards)
        if self._part is not self._arms:
            self._arms.put(rows, self._part)


class _OneByOne:
    """One tuner per repetition."""

    def __init__(
        self, tuners: Sequence[Tuner], rewards: Rewards, contexts: Sequence[Context]
    ) -> None:
        self._tuners, self._values, self._contexts = tuners, rewards.values, contexts

    def pick(self, rows: Columns) -> Columns:
        return np.array([self._values.index(self._choose(row)) for row in rows.tolist()])

    def learn(self, rows: Columns, columns: Columns, rewards: Floats) -> None:
        for row, column, reward in zip(
            rows.tolist(), columns.tolist(), rewards.tolist(), strict=True
        ):
            repetition, scenario = divmod(row, len(self._contexts))
            context, value = self._contexts[scenario], self._values[column]
            ask(self._tuners[repetition], "learn", context, value, reward)

    def _choose(self, row: int) -> Value:
        repetition, scenario = divmod(row, len(self._contexts))
        value: Value = ask(
            self._tuners[repetition], "choose", self._contexts[scenario], self._values
        )
        return value


def _binned(worlds: Sequence[Rewards], choices: NDArray[np.int8], bin: int) -> Learning:
    """Return means over repetitions and bins of the choices at each observation."""
    _, scenarios, observations = choices.shape
    each = np.arange(scenarios)
    right, near, share = np.zeros((3, scenarios, observations))
    for t, world in enumerate(worlds):
        share_of = world.mean / world.mean[each, world.best][:, None]
        right[:, t] = (choices[:, :, t] == world.best).mean(axis=0)
        chosen = share_of[each, choices[:, :, t]]
        near[:, t] = (chosen >= 1 - TIE).mean(axis=0)
        share[:, t] = chosen.mean(axis=0)
    whole = observations // bin * bin
    precision, near_best, performance = (
        a[:, :whole].reshape(scenarios, -1, bin).mean(axis=2) for a in (right, near, share)
    )
    return Learning(
        scenarios=worlds[0].scenarios,
        bin=bin,
        precision=precision,
        near_best=near_best,
        performance=performance,
    )


def _series(scenario: str, value: Value, recorded: ArrayLike) -> Floats:
    try:
        series = np.asarray(recorded, dtype=np.float64)
    except (TypeError, ValueError):
        series = np.array([])
    if series.ndim != 1 or not len(series) or not np.isfinite(series).all() or series.min() < 0:
        raise InputError(
            f"scenario {scenario!r}: the rewards of {value!r} must be numbers, one or more, "
            f"none below zero"
        )
    return series
