"""The multiple-choice knapsack, solved exactly by dynamic programming in native code."""

from collections.abc import Sequence

import numpy as np

from penstock.policies.allocation import _knapsack


def solve(classes: Sequence[Sequence[tuple[int, float]]], capacity: int) -> list[int] | None:
    """Return the index of the item to take of each class of (weight, value), or None.

    Exactly one item a class, total weight at most `capacity`, the highest total value; of equal
    values the lower weight. None if even the lightest items are too heavy.
    """
    offsets = np.cumsum([0, *(len(items) for items in classes)])
    weights = np.array([weight for items in classes for weight, _ in items], np.int32)
    values = np.array([value for items in classes for _, value in items], np.float64)
    chosen = np.empty(len(classes), np.int32)
    feasible = _knapsack.solve(offsets, weights, values, capacity, chosen)
    return chosen.tolist() if feasible else None
