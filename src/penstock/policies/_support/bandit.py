"""A base for tuners that are bandits: one bandit per context, one arm per value.

A new bandit scores each arm, and the highest score is tried next:

    class Mine(Bandit):
        def score(self, arms):
            return arms.mean + ...

The base class does the rest: statistics, contexts, ties, new and removed values, stored state.
"""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from penstock.errors import InputError
from penstock.model import Context, Value
from penstock.policies._support.arms import EMPTY, GREATEST, Arms, Columns, Floats
from penstock.policies._support.bandit_state import from_plain, to_plain

_TIES = 0
"""The stream of draws that breaks ties; policies use streams from 1 on."""


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
