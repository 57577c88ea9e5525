"""The multiple-choice knapsack, solved exactly by dynamic programming in native code."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.policies._support import _knapsack

Class = Sequence[tuple[int, float]]
"""Items as (weight, value)."""
Table = tuple[NDArray[np.int32], NDArray[np.float64]]
"""Their weights and their values."""


def solve(classes: Sequence[Class], capacity: int) -> list[int] | None:
    """Return the index of the item to take of each class, or None.

    Exactly one item per class, total weight at most `capacity`, the highest total value; of equal
    values the lower weight. None if even the lightest items are too heavy.
    """
    items = np.empty(len(classes), np.int32)
    feasible = _knapsack.solve(*_arrays(classes), capacity, items)
    return items.tolist() if feasible else None


def table(items: Class) -> Table:
    """Return the items of a class as arrays, for `solve_tables`."""
    weights, values = zip(*items, strict=True)
    return np.array(weights, np.int32), np.array(values, np.float64)


def solve_tables(classes: Sequence[Table], capacity: int) -> list[int] | None:
    """Solve the same, of classes whose arrays are at hand."""
    if not classes:
        return []
    items = np.empty(len(classes), np.int32)
    weights, values = zip(*classes, strict=True)
    offsets = np.cumsum([0, *map(len, weights)])
    arrays = offsets, np.concatenate(weights), np.concatenate(values)
    return items.tolist() if _knapsack.solve(*arrays, capacity, items) else None


def totals(classes: Sequence[Class], sets: ArrayLike, capacity: int) -> NDArray[np.float64]:
    """Return the highest total value of many sets of classes, each at every capacity.

    `sets` has one row per set: the indices of its classes. The result has one row per set and one
    column per capacity from 0 to `capacity`; minus infinity if nothing fits. One dynamic program
    per set gives the result for all capacities.
    """
    members = np.ascontiguousarray(sets, np.int64)
    best = np.empty((len(members), capacity + 1))
    _knapsack.totals(*_arrays(classes), members.ravel(), len(members), best.ravel())
    return best


def _arrays(
    classes: Sequence[Class],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    offsets = np.cumsum([0, *(len(items) for items in classes)])
    weights = np.array([weight for items in classes for weight, _ in items], np.int32)
    values = np.array([value for items in classes for _, value in items], np.float64)
    return offsets, weights, values
