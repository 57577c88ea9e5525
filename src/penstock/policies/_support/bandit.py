"""A base for tuners that are bandits: one bandit per context, one arm per value.

A new bandit scores each arm, and the highest score is tried next:

    class Mine(Bandit):
        def score(self, arms):
            return arms.mean + ...

The base class does the rest: statistics, contexts, ties, new and removed values, stored state.
`ForgettingBandit` is for a changing environment: it estimates noise, and tries values again.
"""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.model import Context, Value
from penstock.policies._support.arms import EMPTY, GREATEST, Arms, Columns, Floats
from penstock.policies._support.bandit_state import from_plain, to_plain

_TIES = 0
"""The stream of draws that breaks ties; policies use streams from 1 on."""
TRUST = 2.0
"""The weight of the assumed noise, in observations."""
SHAPE = 4
"""Shape of the distribution of times between revisits: they vary by some 30%."""


class Bandit:
    """Tries the value with the highest score; ties are broken at random."""

    sweep: ClassVar[bool] = True
    """Try every value once before scores are compared."""
    discount: float = 1.0
    """The weight of an observation after the next one of its context."""
    memory: int = 0
    """How many of the latest observations of a context count; 0: all."""

    def __init__(self, *, seed: int = 0) -> None:
        if seed < 0:
            raise InputError(f"{self.name()}: seed is {seed}; give zero or more")
        self.seed = seed
        self._contexts: dict[Context, tuple[list[Value], Arms]] = {}
        self._offered: list[Value] = []

    @classmethod
    def name(cls) -> str:
        """Return the policy's name: the class, in kebab-case."""
        return re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

    def score(self, arms: Arms) -> Floats:
        """Return how promising each arm is, exploration included: the highest is tried."""
        raise NotImplementedError

    def estimate(self, arms: Arms) -> Floats:
        """Return the estimated reward of each arm: the highest is `best`."""
        return arms.mean

    def pick(self, arms: Arms) -> Columns:
        """Return the column of the arm to try, one per row."""
        score = self.score(arms)
        if self.sweep:
            score = np.where(arms.count > 0, score, np.inf)
        return _highest(score, arms)

    def observe(self, arms: Arms, columns: Columns, rewards: Floats) -> None:
        """Add the rewards of these columns, one per row."""
        arms.observe(columns, rewards, discount=self.discount)

    def arms(self, contexts: Sequence[Context], seeds: Sequence[int], columns: int) -> Arms:
        """Return arms without observations, one row per context and seed."""
        keys = [_key(context, seed) for context, seed in zip(contexts, seeds, strict=True)]
        return Arms(np.array(keys, dtype=np.uint64), columns, memory=self.memory)

    def choose(self, context: Context, values: Sequence[Value]) -> Value:
        """Return the value to try next; it stays the same until the next reward."""
        if not values:
            raise InputError(f"{self.name()}: there is no value to choose from")
        return values[int(self.pick(self._arms_for(context, values))[0])]

    def best(self, context: Context, values: Sequence[Value]) -> Value | None:
        """Return the best value so far, or None for a context without observations."""
        arms = self._arms_for(context, values)
        if not arms.count.any():
            return None
        estimate = np.where(arms.count > 0, self.estimate(arms), -np.inf)
        return values[int(_highest(estimate, arms)[0])]

    def learn(self, context: Context, value: Value, reward: float) -> None:
        """Add the reward of a value; an invalid one is an InputError and changes nothing."""
        if not 0 <= reward <= GREATEST:  # true for NaN as well
            raise InputError(
                f"{self.name()}: {reward} is not a reward; give one from 0 to {GREATEST}"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{self.name()}: {value} is not a value of a parameter")
        if context not in self._contexts:
            # Columns in the order in which values are offered need not be reordered later.
            offered = list(dict.fromkeys(self._offered))
            self._contexts[context] = (offered, self.arms([context], [self.seed], len(offered)))
        values, arms = self._contexts[context]
        if value not in values:
            values.append(value)
            arms.widen(len(values))
        self.observe(arms, np.array([values.index(value)]), np.array([float(reward)]))

    def learned(self) -> dict[str, Any]:
        """Return all state as plain data (docs/live/tuning.md has the fields)."""
        return to_plain(self.name(), self._contexts)

    def restore(self, learned: Mapping[str, Any]) -> None:
        """Replace the state by what `learned` returned; InputError changes nothing."""
        restored: dict[Context, tuple[list[Value], Arms]] = {}
        for context, values, state in from_plain(self.name(), learned):
            arms = self.arms([context], [self.seed], len(values))
            state.fill(arms)
            restored[context] = (values, arms)
        self._contexts = restored

    def _arms_for(self, context: Context, values: Sequence[Value]) -> Arms:
        self._offered = list(values)
        if context not in self._contexts:
            return self.arms([context], [self.seed], len(values))
        columns, arms = self._contexts[context]
        if columns == self._offered:
            return arms
        return arms.select_columns([columns.index(v) if v in columns else EMPTY for v in values])


@dataclass(kw_only=True, eq=False, repr=False)
class ForgettingBandit(Bandit):
    """A bandit that measures differences in units of the rewards' noise, and revisits values.

    The noise is estimated from all values of a context, so that no unit and no outlier matters. A
    value that is not chosen is tried again after `revisit` observations on average (0: never), or
    later if such trials would cost more than the fraction `cost` of the performance. `width` scales
    the confidence bound or the draws; `noise` is the assumed noise of one reward relative to the
    mean, until there are observations; `seed` is that of the draws.
    """

    revisit: float = 110.0
    cost: float = 0.0125
    width: float = 0.3
    noise: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        super().__init__(seed=self.seed)
        self.check_range("revisit", self.revisit, 0, np.inf)
        self.check_range("cost", self.cost, 1e-6, 1)
        self.check_range("width", self.width, 0, np.inf)
        self.check_range("noise", self.noise, 0, 1)

    def check_range(self, option: str, value: float, least: float, most: float) -> None:
        """Raise InputError if an option is out of its range."""
        if not least <= value <= most:
            raise InputError(f"{self.name()}: {option} is {value}; give {least} to {most}")

    def upper(self, arms: Arms) -> Floats:
        """Return an optimistic estimate of each arm: mean + width noise sqrt(2 ln t / n)."""
        share = 2.0 * np.log(np.maximum(arms.total, 1.0)) / np.maximum(arms.count, 1e-9)
        bound: Floats = arms.mean + self.width * self.deviation(arms) * np.sqrt(share)
        return bound

    def score(self, arms: Arms) -> Floats:
        """Return the optimistic estimates; arms that are due for a revisit come first."""
        return np.where(self.due(arms), np.inf, self.upper(arms))

    def due(self, arms: Arms) -> NDArray[np.bool_]:
        """Return which arms are due for a revisit.

        The hazard is that of a Weibull distribution: regular enough to guarantee revisits,
        irregular enough that values neglected together are not revisited together.
        """
        if not self.revisit:
            return np.zeros(arms.count.shape, dtype=bool)
        best = arms.mean.max(axis=1, keepdims=True)
        loss = (1 - arms.mean / np.where(best > 0, best, 1.0)).sum(axis=1, keepdims=True)
        scale = np.maximum(self.revisit, loss / self.cost) / math.gamma(1 + 1 / SHAPE)
        due: NDArray[np.bool_] = arms.draw(1) < SHAPE / scale * (arms.age / scale) ** (SHAPE - 1)
        return due

    def deviation(self, arms: Arms) -> Floats:
        """Return the standard deviation of one reward: a column."""
        return arms.noise(self.noise, TRUST)


def _highest(score: Floats, arms: Arms) -> Columns:
    """Return the column of the highest score per row, ties broken at random."""
    top = np.fmax.reduce(score, axis=1, keepdims=True)
    tied = score == top
    if tied.sum() > len(tied):
        tied = np.where(tied, arms.draw(_TIES), 0.0)
    column: Columns = np.argmax(tied, axis=1)
    return column


def _key(context: Context, seed: int) -> int:
    """Return the key of a bandit's draws, the same on every machine."""
    text = f"{seed}/{context.operation}/{context.pattern}/{context.size}/{context.load}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
