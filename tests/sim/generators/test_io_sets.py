"""The paper's workloads: what is drawn, and what cannot be."""

from typing import Any

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.sim.checks import check
from penstock.sim.generators import PRESETS
from penstock.sim.generators.io_sets import PLAFRIM_SETS, io_sets, plafrim, three_profiles


def test_the_papers_protocol() -> None:
    workload = io_sets(three_profiles(20, 20, 20), seed=1)
    assert len(workload) == 60
    # About 2000, 200 and 20 iterations a job: 44,400 in all, a little more for the spread.
    assert 43_000 < workload.iterations < 47_000
    assert workload.omega == pytest.approx(0.8, rel=0.02)
    assert np.all(workload.release <= 1.15 * workload.w_iter)
    sets, counts = np.unique(np.round(np.log10(workload.w_iter)), return_counts=True)
    assert dict(zip(sets.tolist(), counts.tolist(), strict=True)) == {1.0: 20, 2.0: 20, 3.0: 20}


def test_without_noise_omega_is_exact() -> None:
    assert io_sets(three_profiles(5, 5, 5), seed=2, noise=0.0).omega == pytest.approx(0.8)


def test_every_job_lasts_to_the_horizon() -> None:
    workload = io_sets(three_profiles(20, 20, 20), seed=3, noise=0.0)
    assert workload.horizon is not None
    assert np.all(workload.work >= workload.horizon * (1 - 1e-12))


def test_a_seed_is_a_workload() -> None:
    one, same, other = (io_sets(three_profiles(3, 3, 3), seed=s) for s in (7, 7, 8))
    np.testing.assert_array_equal(one.io, same.io)
    assert one.iterations != other.iterations or not np.array_equal(one.io, other.io)


def test_plafrims_shares_of_sets() -> None:
    """Section VIII: 7.85, 45.65, 33.49, 10.64, 2.15 and 0.22% of the jobs in S_0 to S_5."""
    shares = 100 * np.array(PLAFRIM_SETS) / sum(PLAFRIM_SETS)
    np.testing.assert_allclose(shares, [7.85, 45.65, 33.49, 10.64, 2.15, 0.22], atol=0.005)
    workload = plafrim(20_000, seed=1, horizon=1.0, noise=0.0)
    drawn = np.bincount(np.round(np.log10(workload.w_iter)).astype(int), minlength=6) / 200
    np.testing.assert_allclose(drawn, shares, atol=1.2)


@pytest.mark.parametrize("preset", ["io-sets", "plafrim"])
@pytest.mark.parametrize("jobs", [1, 2, 15, 61])
def test_presets_of_any_size(preset: str, jobs: int) -> None:
    workload = PRESETS[preset].make(jobs=jobs, seed=1, omega=0.4, horizon=2000.0)
    check(workload)
    assert len(workload) == jobs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"omega": 60.0}, "cannot be reached by 60 jobs"),
        ({"omega": 59.9}, "nothing but I/O"),
        ({"omega": 0.0}, "omega"),
        ({"omega": float("nan")}, "omega"),
        ({"noise": 1.5}, "noise"),
        ({"noise": float("nan")}, "noise"),
        ({"horizon": -1.0}, "horizon"),
        ({"horizon": float("inf")}, "horizon"),
    ],
)
def test_what_cannot_be_drawn(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        io_sets(three_profiles(20, 20, 20), seed=1, **options)


@pytest.mark.parametrize("preset", ["io-sets", "plafrim"])
def test_no_jobs(preset: str) -> None:
    with pytest.raises(InputError, match="jobs = 0"):
        PRESETS[preset].make(jobs=0, seed=1)


def test_releases_and_noise_are_uniform() -> None:
    """Releases in [0, w_iter]; every compute and every I/O phase off by up to b, evenly."""
    workload = io_sets(three_profiles(300, 0, 0), seed=5, noise=0.4, omega=2.0)
    job = np.repeat(np.arange(300), np.diff(workload.offsets))
    assert np.mean(workload.release / workload.w_iter) == pytest.approx(0.5, abs=0.05)
    for phases in (workload.compute, workload.io):
        mean = workload.total(phases) / np.diff(workload.offsets)
        off = phases / mean[job] - 1
        assert off.std() == pytest.approx(0.4 / np.sqrt(3), rel=0.02)


def test_plafrims_sets_are_a_decade_wide() -> None:
    workload = plafrim(5000, seed=2, horizon=1.0, noise=0.0)
    assert workload.profile is not None
    place = np.log10(workload.w_iter) - np.log10(workload.profile)
    assert place.std() == pytest.approx(1 / np.sqrt(12), rel=0.03)
