"""A base for tuners that are bandits: one bandit a context, one arm a value.

A bandit of your own says how good each arm looks, and the highest is tried next:

    class Mine(Bandit):
        def score(self, arms):
            return arms.mean + ...

Everything else is here: statistics, contexts, ties, values that come and go, what is saved.
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
from penstock.policies._support.bandit_state import read, written

_TIES = 0
"""The stream of draws that breaks ties; policies use the others."""


class Bandit:
    """Tries the value whose arm has the highest score; ties are broken at random."""

    sweep: ClassVar[bool] = True
    """Values never tried come first."""
    discount: float = 1.0
    """What an observation is still worth after another one of its context."""
    memory: int = 0
    """How many observations of a context count, the last ones; 0: all."""

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
        """Return how good each arm looks now, chances to learn included: the highest is tried."""
        raise NotImplementedError

    def worth(self, arms: Arms) -> Floats:
        """Return how good each arm is as far as is known: the highest is `best`."""
        return arms.mean

    def pick(self, arms: Arms) -> Columns:
        """Return the column of the arm to try, a row."""
        score = self.score(arms)
        if self.sweep:
            score = np.where(arms.count > 0, score, np.inf)
        return _highest(score, arms)

    def observe(self, arms: Arms, columns: Columns, rewards: Floats) -> None:
        """Take in what the arms of those columns were worth, one a row."""
        arms.observe(columns, rewards, discount=self.discount)

    def arms(self, contexts: Sequence[Context], seeds: Sequence[int], columns: int) -> Arms:
        """Return arms never tried, a row a context and seed."""
        keys = [_key(context, seed) for context, seed in zip(contexts, seeds, strict=True)]
        return Arms(np.array(keys, dtype=np.uint64), columns, memory=self.memory)

    def choose(self, context: Context, values: Sequence[Value]) -> Value:
        """Return the value to try next; it stays the same until something is learnt."""
        if not values:
            raise InputError(f"{self.name()}: there is no value to choose from")
        return values[int(self.pick(self._known(context, values))[0])]

    def best(self, context: Context, values: Sequence[Value]) -> Value | None:
        """Return the best value as far as is known; None: nothing is known of this context."""
        arms = self._known(context, values)
        if not arms.count.any():
            return None
        worth = np.where(arms.count > 0, self.worth(arms), -np.inf)
        return values[int(_highest(worth, arms)[0])]

    def learn(self, context: Context, value: Value, reward: float) -> None:
        """Take in what a value was worth; InputError, and nothing changes: it is no reward."""
        if not 0 <= reward <= GREATEST:  # not a number is neither
            raise InputError(f"{self.name()}: {reward} is no reward; give one from 0 to {GREATEST}")
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{self.name()}: {value} is no value of a parameter")
        if context not in self._contexts:
            # Columns in the order in which values are asked for: arms need not be sorted then.
            known = list(dict.fromkeys(self._offered))
            self._contexts[context] = (known, self.arms([context], [self.seed], len(known)))
        values, arms = self._contexts[context]
        if value not in values:
            values.append(value)
            arms.widen(len(values))
        self.observe(arms, np.array([values.index(value)]), np.array([float(reward)]))

    def learned(self) -> dict[str, Any]:
        """Return all that was learnt, as plain data (docs/live/tuning.md has the fields)."""
        return written(self.name(), self._contexts)

    def restore(self, learned: Mapping[str, Any]) -> None:
        """Put what `learned` returned in place of what is known; InputError: nothing changes."""
        restored: dict[Context, tuple[list[Value], Arms]] = {}
        for context, values, state in read(self.name(), learned):
            arms = self.arms([context], [self.seed], len(values))
            state.fill(arms)
            restored[context] = (values, arms)
        self._contexts = restored

    def _known(self, context: Context, values: Sequence[Value]) -> Arms:
        self._offered = list(values)
        if context not in self._contexts:
            return self.arms([context], [self.seed], len(values))
        columns, arms = self._contexts[context]
        if columns == self._offered:
            return arms
        return arms.of_columns([columns.index(v) if v in columns else EMPTY for v in values])


def _highest(score: Floats, arms: Arms) -> Columns:
    """Return the column of the highest score, a row, ties broken at random."""
    top = np.fmax.reduce(score, axis=1, keepdims=True)
    tied = score == top
    if tied.sum() > len(tied):
        tied = np.where(tied, arms.draw(_TIES), 0.0)
    column: Columns = np.argmax(tied, axis=1)
    return column


def _key(context: Context, seed: int) -> int:
    """Return what a bandit's draws depend on, the same on every machine."""
    said = f"{seed}/{context.operation}/{context.pattern}/{context.size}/{context.load}"
    return int.from_bytes(hashlib.blake2b(said.encode(), digest_size=8).digest(), "big")
