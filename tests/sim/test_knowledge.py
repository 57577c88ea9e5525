"""How much policies are told of jobs."""

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.sim.knowledge import Knowledge

JOBS = 20_000


def test_exact_and_learned_estimates_have_no_error_of_their_own() -> None:
    assert np.all(Knowledge().factors(JOBS) == 1.0)
    assert np.all(Knowledge(kind="learned").factors(JOBS) == 1.0)


def test_noise_is_in_decades_and_by_seed() -> None:
    noisy = {seed: Knowledge(kind="noisy", decades=0.5, seed=seed).factors(JOBS) for seed in (1, 2)}
    error = np.log10(noisy[1])
    assert error.std() == pytest.approx(0.5, rel=0.03)
    assert error.mean() == pytest.approx(0.0, abs=0.02)
    assert not np.array_equal(noisy[1], noisy[2])
    again = Knowledge(kind="noisy", decades=0.5, seed=1).factors(JOBS)
    np.testing.assert_array_equal(noisy[1], again)


@pytest.mark.parametrize("text", ["", "Exact", "noisy:", "noisy:-1", "noisy:x", "learned:1"])
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(InputError, match="knowledge"):
        Knowledge.parse(text)


def test_what_can() -> None:
    assert Knowledge.parse("noisy:0.5", seed=3) == Knowledge(kind="noisy", decades=0.5, seed=3)
    assert Knowledge.parse("noisy").decades == 0.25
