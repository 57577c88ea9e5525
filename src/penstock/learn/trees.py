"""Decision trees as plain arrays: scikit-learn trains them, and is not needed to evaluate them."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from penstock.errors import InputError

LEAF = -1
Floats = list[float]


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """A decision tree: node 0 is its root, and children come after their parents."""

    feature: list[int]
    """The index of the feature that each node splits on; -1 for a leaf."""
    threshold: Floats
    """Values at or below it go to the left child."""
    left: list[int]
    right: list[int]
    shares: list[Floats]
    """At each node: the shares of the classes, or the one value of a regression."""

    def evaluate(self, values: Sequence[float]) -> Sequence[float]:
        """Return the shares of the classes, or the value, for a row of features."""
        node, feature = 0, self.feature
        while (at := feature[node]) >= 0:
            node = (self.left if values[at] <= self.threshold[node] else self.right)[node]
        return self.shares[node]

    def check(self, features: int, classes: int) -> None:
        """Raise InputError unless every path ends in a leaf."""
        count = len(self.feature)
        arrays = (self.threshold, self.left, self.right, self.shares)
        if not count or any(len(array) != count for array in arrays):
            raise InputError("a tree's arrays differ in length")
        for node, at in enumerate(self.feature):
            children = (self.left[node], self.right[node])
            if at != LEAF and not (
                0 <= at < features and all(node < child < count for child in children)
            ):
                raise InputError(f"node {node} of a tree leads nowhere")
        check_finite([self.threshold, *self.shares])
        if any(len(shares) != classes for shares in self.shares):
            raise InputError("a node of a tree does not have a share for every class")


def tree_from_sklearn(tree: Any, shares: list[Floats]) -> Tree:
    """Copy scikit-learn's arrays of a tree; `shares` are the values at its nodes."""
    leaf = tree.children_left < 0
    return Tree(
        feature=np.where(leaf, LEAF, tree.feature).tolist(),
        threshold=np.where(leaf, 0.0, tree.threshold).tolist(),
        left=np.where(leaf, 0, tree.children_left).tolist(),
        right=np.where(leaf, 0, tree.children_right).tolist(),
        shares=shares,
    )


def check_finite(rows: Sequence[Floats]) -> None:
    """Raise InputError unless all numbers are finite."""
    if not all(math.isfinite(value) for row in rows for value in row):
        raise InputError("it contains a number that is not finite")
