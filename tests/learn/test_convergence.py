"""Formula 2 of paper write-models, by hand."""

import math

import pytest

from penstock.learn.convergence import Convergence

Z = 1.959964


def test_formula_2() -> None:
    """Runs of 9, 10 and 11 s: mean 10, sigma sqrt(2/3), over sqrt(3 - 1): 1.96 * 0.57735 / 10."""
    assert Convergence().error([9, 10, 11]) == pytest.approx(Z * math.sqrt(1 / 3) / 10, rel=1e-6)
    assert Convergence().error([8, 12]) == pytest.approx(Z * 2 / 10, rel=1e-6)


def test_confidence_is_two_sided() -> None:
    wide = Convergence(confidence=0.99).error([9, 10, 11])
    assert wide == pytest.approx(2.575829 * math.sqrt(1 / 3) / 10, rel=1e-6)


def test_it_is_reached_at_a_tenth_and_not_before_three_runs() -> None:
    """Runs of 10 - d, 10 and 10 + d: Z d / sqrt(3) / 10 is a tenth for d = 0.88371."""
    assert Convergence().reached([10 - 0.88, 10, 10.88])
    assert not Convergence().reached([10 - 0.89, 10, 10.89])
    assert not Convergence().reached([10, 10])
    assert not Convergence().reached([])
    assert Convergence().error([10]) == math.inf
