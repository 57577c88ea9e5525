"""How much policies are told of jobs."""

from itertools import combinations

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.sim.evaluate.draws import vary
from penstock.sim.knowledge import Knowledge
from penstock.sim.workload import Workload

JOBS = 20_000


def workload(jobs: int = JOBS) -> Workload:
    return Workload(
        compute=np.full(jobs, 6.0),
        io=np.ones(jobs),
        offsets=np.arange(jobs + 1),
        release=np.zeros(jobs),
    )


def test_exact_and_learned_estimates_have_no_error_of_their_own() -> None:
    assert np.all(workload().estimate_factors(Knowledge()) == 1.0)
    assert np.all(workload().estimate_factors(Knowledge(kind="learned")) == 1.0)


def test_noise_is_in_decades_and_by_seed() -> None:
    noisy = {
        seed: workload().estimate_factors(Knowledge(kind="noisy", decades=0.5, seed=seed))
        for seed in (1, 2)
    }
    error = np.log10(noisy[1])
    assert error.std() == pytest.approx(0.5, rel=0.03)
    assert error.mean() == pytest.approx(0.0, abs=0.02)
    assert not np.array_equal(noisy[1], noisy[2])
    again = workload().estimate_factors(Knowledge(kind="noisy", decades=0.5, seed=1))
    np.testing.assert_array_equal(noisy[1], again)


def test_workloads_of_one_comparison_have_independent_noise() -> None:
    """One noise for all of them would not be averaged over, and intervals would be too narrow."""
    noise = Knowledge(kind="noisy")
    variants = [vary(workload(), seed) for seed in range(1, 5)]
    errors = [np.log10(w.estimate_factors(noise)) for w in (workload(), *variants)]
    for one, other in combinations(errors, 2):
        # Four standard deviations of the correlation of this many independent pairs.
        assert abs(np.corrcoef(one, other)[0, 1]) < 4 / JOBS**0.5


@pytest.mark.parametrize("text", ["", "Exact", "noisy:", "noisy:-1", "noisy:x", "learned:1"])
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(InputError, match="knowledge"):
        Knowledge.parse(text)


def test_what_can() -> None:
    assert Knowledge.parse("noisy:0.5", seed=3) == Knowledge(kind="noisy", decades=0.5, seed=3)
    assert Knowledge.parse("noisy").decades == 0.25
