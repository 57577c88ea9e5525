"""Which of several groups of measurements differ: Kruskal-Wallis, then Dunn's test pair by pair.

O. J. Dunn, "Multiple comparisons using rank sums", Technometrics 6(3), 1964. All measurements are
ranked together; with N of them, the mean ranks of groups i and j are compared by

    z = (R_i - R_j) / sqrt((N (N + 1) / 12 - sum(t^3 - t) / (12 (N - 1))) (1 / n_i + 1 / n_j)),

t over the sizes of the ties. The p reported is one-sided, P(Z >= |z|), as R's dunn.test reports it:
it is held against alpha / 2. No adjustment for the number of pairs.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.float64]
ALPHA = 0.05


def dunn(groups: Sequence[ArrayLike]) -> Floats:
    """Return the one-sided p of every pair of groups, as a symmetric matrix with ones inside."""
    sizes = np.array([np.size(group) for group in groups])
    values = np.concatenate([np.asarray(group, np.float64) for group in groups])
    total = len(values)
    _, ties = np.unique(values, return_counts=True)
    spread = total * (total + 1) / 12 - (ties**3 - ties).sum() / (12 * (total - 1))
    starts = np.cumsum(sizes) - sizes
    mean_rank = np.add.reduceat(stats.rankdata(values), starts) / sizes
    error = np.sqrt(spread * (1 / sizes[:, None] + 1 / sizes))
    p: Floats = stats.norm.sf(np.abs(mean_rank[:, None] - mean_rank) / error)
    np.fill_diagonal(p, 1.0)
    return p


def distinct(groups: Sequence[ArrayLike], alpha: float = ALPHA) -> NDArray[np.bool_]:
    """Return which pairs of groups differ; none where Kruskal-Wallis rejects nothing."""
    if stats.kruskal(*groups).pvalue > alpha:
        return np.zeros((len(groups), len(groups)), bool)
    differ: NDArray[np.bool_] = dunn(groups) <= alpha / 2
    return differ
