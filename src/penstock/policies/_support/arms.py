"""The statistics of bandits' arms as arrays: one row per bandit, one column per value.

A live tuner has one row per context; an evaluation has one row per scenario and repetition, and the
same policy code runs on both. Arrays are updated in place, all rows at once.

Random numbers are a hash of the row's key, the number of observations and the column: the next draw
follows from the statistics, so that no generator has to be stored.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.uint64(0xD1B54A32D192ED03)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11))
_PER_ARM = ("count", "mean", "scatter", "last")
GREATEST = 1e30
"""Greatest reward: its square must be finite."""
EMPTY = -1
"""Marks a slot of the window without a reward."""


class Arms:
    """The arms of several bandits of one policy."""

    __slots__ = (
        "count",
        "high",
        "key",
        "last",
        "low",
        "mean",
        "recent",
        "scatter",
        "seen",
        "which",
    )

    def __init__(self, key: NDArray[np.uint64], columns: int, *, memory: int = 0) -> None:
        rows = len(key)
        self.key = key
        self.seen = np.zeros(rows, dtype=np.int64)
        """Number of observations so far."""
        self.count: Floats = np.zeros((rows, columns))
        """Observations of each arm, discounted by age."""
        self.mean: Floats = np.zeros((rows, columns))
        self.scatter: Floats = np.zeros((rows, columns))
        """Sum of squared deviations from the mean, discounted like the counts."""
        self.last: Floats = np.zeros((rows, columns))
        """The number of the arm's latest observation, counted from 1."""
        self.low: Floats = np.full(rows, np.inf)
        self.high: Floats = np.zeros(rows)
        """Least and greatest reward so far."""
        self.recent: Floats = np.zeros((rows, memory))
        """The rewards in the window: observation t is in slot t mod memory."""
        self.which = np.full((rows, memory), EMPTY, dtype=np.int64)
        """The columns of those rewards."""

    @property
    def total(self) -> Floats:
        """Discounted observations of all arms: a column."""
        total: Floats = self.count.sum(axis=1, keepdims=True)
        return total

    @property
    def age(self) -> Floats:
        """Observations since an arm's latest."""
        age: Floats = self.seen[:, None] - self.last
        return age

    @property
    def scaled(self) -> Floats:
        """Means on a scale from the least reward of a row (0) to the greatest (1)."""
        width = (self.high - self.low)[:, None]
        flat = ~(width > 0)
        scaled: Floats = (self.mean - self.low[:, None]) / np.where(flat, 1.0, width)
        return np.where(flat | (self.count <= 0), 0.0, scaled)

    def noise(self, guess: float, weight: float) -> Floats:
        """Return the standard deviation of one reward: a column.

        It is pooled over the arms, since each alone has too few observations. `guess`, relative to
        the mean, is the prior, with the weight of `weight` observations.
        """
        level = (self.count * self.mean).sum(axis=1) / np.maximum(self.count.sum(axis=1), 1e-9)
        freedom = np.maximum(self.count - 1, 0).sum(axis=1)
        variance = (self.scatter.sum(axis=1) + weight * (guess * level) ** 2) / (freedom + weight)
        deviation: Floats = np.sqrt(variance)[:, None]
        return deviation

    def draw(self, stream: int) -> Floats:
        """Return one number in (0, 1) per arm; it differs by observation and stream."""
        columns = _columns(self.count.shape[1])
        step = (self.seen.astype(np.uint64) + np.uint64(1)) * _STEP
        shift = np.array([stream], dtype=np.uint64) * _MIX[0]
        z = mix((self.key ^ (step + shift))[:, None] + columns)
        uniform: Floats = (z >> _SHIFTS[3]).astype(np.float64) * 2.0**-53 + 2.0**-54
        return uniform

    def coin(self, stream: int) -> Floats:
        """Return one number in (0, 1) per row: a column."""
        return self.draw(stream)[:, :1]

    def normal(self, stream: int) -> Floats:
        """Return one standard normal number per arm (Box and Muller).

        It uses two streams: `stream` and the next one.
        """
        radius = np.sqrt(-2.0 * np.log(self.draw(stream)))
        normal: Floats = radius * np.cos(2.0 * np.pi * self.draw(stream + 1))
        return normal

    def observe(self, columns: Columns, rewards: Floats, *, discount: float) -> None:
        """Discount the statistics, and add one reward per row.

        Without discount this is Equation 4.1 of thesis forwarding.
        """
        rows = np.arange(len(columns))
        memory = self.recent.shape[1]
        if memory:
            slots = self.seen % memory
            oldest = self.which[rows, slots]
            self.which[rows, slots] = EMPTY
            self.recount(oldest)
            self.which[rows, slots], self.recent[rows, slots] = columns, rewards
        if discount < 1:
            self.count *= discount
            self.scatter *= discount
        count = self.count[rows, columns] + 1.0
        old = self.mean[rows, columns]
        new = old + (rewards - old) / count
        self.count[rows, columns], self.mean[rows, columns] = count, new
        self.scatter[rows, columns] += (rewards - old) * (rewards - new)
        np.minimum(self.low, rewards, out=self.low)
        np.maximum(self.high, rewards, out=self.high)
        self.seen += 1
        self.last[rows, columns] = self.seen

    def recount(self, columns: Columns) -> None:
        """Recompute one arm per row from the window, unless its column is EMPTY.

        Subtracting the oldest reward from the mean would leave a rounding error.
        """
        rows = np.flatnonzero(columns != EMPTY)
        if not len(rows):
            return
        columns = columns[rows]
        own = self.which[rows] == columns[:, None]
        count = own.sum(axis=1)
        recent = self.recent[rows]
        mean = np.where(own, recent, 0.0).sum(axis=1) / np.maximum(count, 1)
        self.count[rows, columns], self.mean[rows, columns] = count, mean
        deviation = np.where(own, recent - mean[:, None], 0.0)
        self.scatter[rows, columns] = (deviation * deviation).sum(axis=1)

    def select_columns(self, columns: Sequence[int]) -> "Arms":
        """Return a copy with these columns in this order; EMPTY is an arm without observations."""
        index = np.array(columns, dtype=np.int64)
        part = Arms(self.key, len(columns))
        part.seen, part.low, part.high = self.seen, self.low, self.high
        for name in _PER_ARM:
            setattr(part, name, np.where(index == EMPTY, 0.0, getattr(self, name)[:, index]))
        return part

    def select_rows(self, rows: Any) -> "Arms":
        """Return a copy of these rows."""
        part = Arms.__new__(Arms)
        for name in Arms.__slots__:
            setattr(part, name, getattr(self, name)[rows])
        return part

    def put(self, rows: Any, part: "Arms") -> None:
        """Write back the rows that `select_rows` returned."""
        for name in Arms.__slots__:
            getattr(self, name)[rows] = getattr(part, name)

    def widen(self, columns: int) -> None:
        """Add arms without observations, up to `columns`."""
        more = ((0, 0), (0, columns - self.count.shape[1]))
        for name in _PER_ARM:
            setattr(self, name, np.pad(getattr(self, name), more))


@cache
def _columns(number: int) -> NDArray[np.uint64]:
    return np.arange(1, number + 1, dtype=np.uint64) * _GOLDEN


def mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash 64 bits (the finaliser of SplitMix64, Steele et al.)."""
    z = (z ^ (z >> _SHIFTS[0])) * _MIX[0]
    z = (z ^ (z >> _SHIFTS[1])) * _MIX[1]
    return z ^ (z >> _SHIFTS[2])
