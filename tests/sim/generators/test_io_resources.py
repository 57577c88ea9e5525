"""The protocol of paper io-resources, Section V-C."""

import math
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.model.load import io_load
from penstock.sim.generators.io_resources import (
    SITE,
    OstProfile,
    io_resources,
    job_sizes,
    measured_ost_curves,
    mn4_curves,
    ost_curves,
    ratio_bound,
)


@pytest.mark.parametrize("theta", [0.05, 0.5, 1.0, 1.9])
def test_the_bound_solves_its_equation(theta: float) -> None:
    """log(1 + b) = b theta N / K with N = 20, K = 40."""
    b = ratio_bound(theta, 40, 20)
    assert b > 0
    assert math.log1p(b) == pytest.approx(b * theta / 2, rel=1e-9)


@pytest.mark.parametrize("theta", [2.0, 3.0, 0.0, -1.0, math.nan])
def test_a_load_that_no_bound_gives_is_refused(theta: float) -> None:
    with pytest.raises(InputError, match=r"theta N / K = .* between 0 and 1; give theta between"):
        io_resources(theta, seed=0)


def test_sizes() -> None:
    """10 / 30 / 60% of the jobs on 75 / 20 / 5% of 480 nodes; whole nodes for up to 40 jobs."""
    assert job_sizes(40, 480) == [90] * 4 + [8] * 12 + [1] * 24
    assert job_sizes(20, 480) == [180] * 2 + [16] * 6 + [2] * 12
    assert sum(job_sizes(30, 480)) == 480
    with pytest.raises(InputError, match="25 of 41 jobs would share 24 of 480"):
        job_sizes(41, 480)
    with pytest.raises(InputError, match="at least 1"):
        io_resources(0.1, seed=0, jobs=0)


def test_jobs_are_the_papers() -> None:
    jobs = io_resources(0.5, seed=3)
    assert len(jobs) == 40
    for job in jobs:
        assert job.compute is not None
        assert job.volume is not None
        assert job.w_iter is not None
        assert job.curve is not None
        assert job.compute + job.volume / job.curve.bandwidth(1) == pytest.approx(5000)
        phases = 5000 / job.w_iter
        assert phases == pytest.approx(round(phases))
        assert 2 <= round(phases) <= 20
        assert job.curve.counts == (1, 2, 4, 8)
    assert io_resources(0.5, seed=3) == jobs
    assert io_resources(0.5, seed=4) != jobs


def test_the_load_is_theta_in_expectation() -> None:
    """I/O-load(pi_1) = theta: the mean over 300 sets, within four standard errors."""
    loads = []
    for seed in range(300):
        jobs = io_resources(0.5, seed=seed)
        compute = [job.compute or 0.0 for job in jobs]
        io = [job.volume / job.curve.bandwidth(1) for job in jobs if job.volume and job.curve]
        assert len(io) == len(jobs)
        loads.append(float(io_load(1, compute, io, SITE.resources)))
    assert np.mean(loads) == pytest.approx(0.5, abs=4 * float(np.std(loads)) / math.sqrt(300))


def test_measured_curves_have_no_direct_access() -> None:
    assert len(mn4_curves()) == 189
    assert {curve.counts for curve in mn4_curves()} == {(1, 2, 4, 8)}


def test_synthetic_ost_curves_rise_or_stay() -> None:
    curves = ost_curves(seed=1)
    assert len(curves) == 301
    assert {curve.counts for curve in curves} == {tuple(range(1, 9))}
    gain = np.array([curve.bandwidth(8) / curve.bandwidth(1) for curve in curves])
    assert 0.7 < (gain > 1.3).mean() < 0.9
    assert 0.1 < (np.abs(gain - 1) < 0.15).mean() < 0.3
    assert gain.max() < 8
    exact = ost_curves(50, profile=OstProfile(noise=0.0, flat=0.0))
    for curve in exact:
        gains = np.diff(curve.bandwidths)
        assert (gains > 0).all()
        assert (np.diff(gains) < 0).all()
    assert ost_curves(10, seed=1) == ost_curves(10, seed=1) != ost_curves(10, seed=2)


def test_measured_curves_over_targets_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "ost-curves.csv"
    file.write_text("configuration,targets,bandwidth\na,1,10\na,2,18\na,1,12\nb,1,5\nb,8,20\n")
    one, other = measured_ost_curves(file)
    assert (one.counts, one.bandwidths) == ((1, 2), (11.0, 18.0)), "a mean over repetitions"
    assert other.bandwidth(8) == 20.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("configuration,targets\na,1\n", "no column bandwidth"),
        ("configuration,targets,bandwidth\n", "no measurements"),
        ("configuration,targets,bandwidth\na,one,10\n", "line 2"),
        ("configuration,targets,bandwidth\na,1,0\n", "line 2: give positive"),
        ("configuration,targets,bandwidth\na,2,10\n", "'a' was not measured with one target"),
    ],
)
def test_a_file_of_curves_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "ost-curves.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        measured_ost_curves(file)
