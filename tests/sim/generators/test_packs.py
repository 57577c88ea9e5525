"""The workloads of paper packs: what is drawn, and what the open choices change."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.sim.checks import check
from penstock.sim.generators.packs import (
    ALPHAS,
    TWELVE,
    Choices,
    _sizes,
    alpha,
    packs,
    table_1,
)
from penstock.sim.workload import Workload


def test_the_papers_protocol() -> None:
    assert (ALPHAS[0], ALPHAS[1], ALPHAS[-1], len(ALPHAS)) == (0.5, 0.75, 10.0, 39)
    drawn = [packs(a, seed=(1, k)) for k, a in enumerate(ALPHAS)]
    assert 25 <= min(map(len, drawn)) < 35
    assert 90 < max(map(len, drawn)) <= 100
    for workload in drawn:
        check(workload)
        counts = np.diff(workload.offsets)
        assert counts.min() >= 250
        assert counts.max() <= 1000
        assert workload.compute.min() >= 10
        assert workload.compute.max() <= 100
        load = workload.io / workload.compute
        assert 0 <= load.min() <= load.max() <= 1
        assert set(workload.nodes.tolist()) <= {2**j for j in range(12)}
        # Periodic: all phases of a job are alike.
        assert workload.io[0] == workload.io[counts[0] - 1]


def test_a_share_of_the_jobs_has_a_low_io_load() -> None:
    """mu_1 = 0.1 and mu_2 = 0.9 with standard deviation 0.1; both are cut at one end."""
    load = np.concatenate([(w.io / w.compute)[w.offsets[:-1]] for w in map(_at_2, range(60))])
    low, high = load[load < 0.5], load[load > 0.5]
    assert len(low) / len(load) == pytest.approx(0.5, abs=0.1)
    # The mean of a normal distribution cut one standard deviation below: mu + sigma 0.2876.
    assert low.mean() == pytest.approx(0.129, abs=0.01)
    assert high.mean() == pytest.approx(0.871, abs=0.01)


def _at_2(k: int) -> Workload:
    return packs(2.0, seed=(2, k))


@pytest.mark.parametrize("sizes", ["binomial", "geometric", "adjacent"])
@pytest.mark.parametrize("mean", [1.0, 3.0, 18.6, 372.0, 1365.4, 1940.0, 2048.0])
def test_sizes_have_the_mean_asked_for(sizes: Any, mean: float) -> None:
    drawn = _sizes(np.random.default_rng(3), 40_000, mean, sizes)
    assert drawn.mean() == pytest.approx(mean, rel=0.05)
    assert set(drawn.tolist()) <= {2**j for j in range(12)}


def test_the_io_occupation_is_about_what_was_asked_for() -> None:
    """Footnote 3: replacing all by means is not exact, but the order of magnitude is right."""
    for wanted in (0.5, 2.0, 8.0):
        got = [alpha(packs(wanted, seed=(4, k))) for k in range(40)]
        assert np.median(got) == pytest.approx(wanted, rel=0.25)


def test_what_the_open_choices_change() -> None:
    """A variance of 0.1 blurs the two classes: loads of 0.1 +- 0.32 cut at 0 have a mean of 0.36.

    The sizes keep their mean and change their spread, which decides how many jobs share a pack.
    """
    plain, variance = (
        [(w.io / w.compute).mean() for w in drawn]
        for drawn in (
            [packs(2.0, seed=(5, k)) for k in range(30)],
            [packs(2.0, seed=(5, k), choices=Choices(deviation=0.1**0.5)) for k in range(30)],
        )
    )
    assert np.std(variance) < 0.7 * np.std(plain)
    spread = {}
    for sizes in ("binomial", "geometric", "adjacent"):
        nodes = packs(2.0, seed=(6, 1), jobs=3000, choices=Choices(sizes=sizes)).nodes
        spread[sizes] = nodes.std() / nodes.mean()
    assert spread["adjacent"] < 0.5 < spread["binomial"] < spread["geometric"]
    wide = packs(2.0, seed=7, jobs=500, choices=Choices(loads=(0.0, 2.0)))
    assert (wide.io / wide.compute).max() > 1


def test_both_readings_of_the_grid() -> None:
    """{0.5, 0.75, 1...10}: quarters from the first two values, or whole numbers from the third."""
    assert TWELVE[:5] == (0.5, 0.75, 1.0, 2.0, 3.0)
    assert len(TWELVE) == 12
    assert set(TWELVE) < set(ALPHAS)


def test_a_centred_exponent_makes_larger_jobs_and_lower_loads() -> None:
    """E(2^X) of a Poisson X of mean log2 Q is e^(log2 Q) = Q^1.44: loads fall below alpha_gen."""

    def median_load(**choices: Any) -> float:
        drawn = [packs(4.0, seed=(8, k), choices=Choices(**choices)) for k in range(40)]
        return float(np.median([alpha(workload) for workload in drawn]))

    plain = median_load(sizes="geometric")
    assert plain == pytest.approx(4.0, rel=0.25)
    assert median_load(sizes="poisson") < 0.6 * plain
    assert median_load(sizes="normal") < 0.6 * plain
    assert median_load(sizes="geometric", size_factor=3.0) == pytest.approx(plain / 3, rel=0.25)


def test_a_seed_is_a_workload() -> None:
    one, same, other = (packs(3.0, seed=s) for s in (7, 7, 8))
    np.testing.assert_array_equal(one.io, same.io)
    assert len(one) != len(other) or not np.array_equal(one.io, other.io)


def test_table_1() -> None:
    """Every application would take 10,500 s alone; batches multiply that."""
    assert table_1().work.tolist() == [10_500.0] * 5
    assert np.diff(table_1(2).offsets).tolist() == [500, 1000, 2000, 2000, 1000]
    noisy = table_1(4, noise=0.1, seed=1)
    assert noisy.work == pytest.approx([42_000.0] * 5, rel=0.02)
    assert len(set(noisy.io.tolist())) > 1000


def _any(value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: packs(0.0, seed=1), "alpha_gen"),
        (lambda: packs(float("nan"), seed=1), "alpha_gen"),
        (lambda: packs(1.0, seed=1, jobs=0), "jobs = 0"),
        (lambda: Choices(loads=(0.5, 0.5)), "interval"),
        (lambda: Choices(loads=(-0.5, 0.5)), "interval"),
        (lambda: Choices(deviation=0.0), "deviation"),
        (lambda: Choices(sizes=_any("gamma")), "unknown distribution of sizes 'gamma'"),
        (lambda: Choices(size_factor=0.0), "size factor is 0"),
        (lambda: table_1(0), "batches"),
        (lambda: table_1(noise=2.0), "noise"),
    ],
)
def test_what_cannot_be_drawn(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
