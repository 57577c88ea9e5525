"""N workloads where there is one file."""

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.sim.evaluate.draws import Distinct, Draws, alike, check_distinct, vary
from penstock.sim.generators import PRESETS, draw
from penstock.sim.workload import Generator, Workload

OPTIONS = {"jobs": 6, "horizon": 300.0}


def two_jobs() -> Workload:
    return Workload(
        compute=[6, 6, 9], io=[5, 5, 4], offsets=[0, 2, 3], release=[0, 1], nodes=[2, 3]
    )


def test_variants_are_the_same_jobs_released_later_by_less_than_an_iteration() -> None:
    jobs = two_jobs()
    shifts = np.array([vary(jobs, seed).release - jobs.release for seed in range(1, 200)])
    assert (shifts >= 0).all()
    assert (shifts < jobs.w_iter).all()
    assert shifts.mean(axis=0) == pytest.approx(jobs.w_iter / 2, rel=0.15)
    one = vary(jobs, 1)
    assert one.compute is jobs.compute
    assert (vary(jobs, 1).release == one.release).all()
    assert (jobs.release == [0, 1]).all()


@pytest.mark.parametrize("preset", PRESETS)
def test_a_draw_says_what_drew_it(preset: str) -> None:
    made = draw(preset, 3, {"jobs": 30})
    assert made.generator == Generator(
        preset=preset, seed=3, options=PRESETS[preset].options | {"jobs": 30}
    )
    assert alike(made, draw(preset, 3, made.generator.options))
    assert not alike(made, draw(preset, 4, made.generator.options))


def test_redrawn_workloads_have_the_following_seeds() -> None:
    draws = Draws.of("w", draw("io-sets", 5, OPTIONS), 3)
    made = dict(draws)
    assert list(made) == [5, 6, 7]
    assert all(alike(workload, draw("io-sets", seed, OPTIONS)) for seed, workload in made.items())


def test_the_first_is_the_file_itself() -> None:
    jobs = two_jobs()
    (seed, first), (_, second) = Draws.of("w", jobs, 2)
    assert (seed, first) == (0, jobs)
    assert not alike(first, second)
    assert [w for _, w in Draws.of("w", jobs, 1)] == [jobs]


def test_the_same_draw_twice_is_refused() -> None:
    one, other = (Draws.of(f"w{seed}", draw("io-sets", seed, OPTIONS), 3) for seed in (1, 3))
    check_distinct([one])
    with pytest.raises(InputError, match="both would draw seed 3; give one"):
        check_distinct([one, other])


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'omega'"):
        draw("io-sets", 1, {"omegas": 1})


def test_the_same_jobs_twice_are_refused_by_content() -> None:
    distinct = Distinct()
    distinct.check(two_jobs(), "a.json")
    distinct.check(vary(two_jobs(), 1), "a.json, seed 1")
    with pytest.raises(InputError, match=r"a\.json and b\.csv are the same workload.*give it once"):
        distinct.check(two_jobs(), "b.csv")
