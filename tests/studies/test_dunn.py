"""Dunn's test on a worked example and on the equation itself."""

import math

import numpy as np
import pytest
from scipy import stats

from penstock.studies.forwarding_policies.patterns import distinct, dunn

# J. H. Zar, Biostatistical Analysis: pH of four ponds, with ties and unequal numbers. Worked there:
# rank sums 55, 132.5, 145 and 163.5; Q = 2.95 (3 against 1), 2.99 (4 against 1), 2.14 (2 against 1)
# and 0.88 (3 against 2).
PONDS = (
    [7.68, 7.69, 7.70, 7.70, 7.72, 7.73, 7.73, 7.76],
    [7.71, 7.73, 7.74, 7.74, 7.78, 7.78, 7.80, 7.81],
    [7.74, 7.75, 7.77, 7.78, 7.80, 7.81, 7.84],
    [7.71, 7.71, 7.74, 7.79, 7.81, 7.85, 7.87, 7.91],
)


def test_a_worked_example_with_ties() -> None:
    ranks = np.split(stats.rankdata(np.concatenate(PONDS)), [8, 16, 23])
    assert [float(r.sum()) for r in ranks] == [55, 132.5, 145, 163.5]
    z = stats.norm.isf(dunn(PONDS))
    assert z[2, 0] == pytest.approx(2.95, abs=0.005)
    assert z[3, 0] == pytest.approx(2.99, abs=0.005)
    assert z[1, 0] == pytest.approx(2.14, abs=0.005)
    assert z[2, 1] == pytest.approx(0.88, abs=0.01)


def test_the_equation_without_ties() -> None:
    """Mean ranks 2, 5 and 8 of 9 values: z = 3 / sqrt(9 x 10 / 12 x 2 / 3) for neighbours."""
    p = dunn(([1, 2, 3], [4, 5, 6], [7, 8, 9]))
    assert p[0, 1] == pytest.approx(stats.norm.sf(3 / math.sqrt(5)))
    assert p[0, 2] == pytest.approx(stats.norm.sf(6 / math.sqrt(5)))
    assert (p == p.T).all()
    assert (np.diag(p) == 1).all()


def test_pairs_are_held_against_half_of_alpha() -> None:
    """p of ponds 1 and 2 is 0.016, that of Kruskal-Wallis 0.008."""
    assert distinct(PONDS)[1, 0]
    assert not distinct(PONDS, alpha=0.03)[1, 0]
    assert distinct(PONDS, alpha=0.03)[2, 0]


def test_nothing_is_distinct_where_kruskal_wallis_rejects_nothing() -> None:
    """Groups 1 and 3 alone would differ (p = 0.0036), but at alpha = 0.02 the first test stops."""
    groups = ([1, 2, 3], [4, 5, 6], [7, 8, 9])
    assert dunn(groups)[0, 2] <= 0.01
    assert not distinct(groups, alpha=0.02).any()
    assert distinct(groups, alpha=0.05)[0, 2]
