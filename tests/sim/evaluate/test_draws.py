"""N workloads where there is one file."""

import math
import re
import tracemalloc

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


@pytest.mark.parametrize(
    ("preset", "options"),
    [
        ("io-sets", {"jobs": 10**12}),
        ("io-sets", {"jobs": 2, "n_h": 10**12}),
        ("io-sets", {"jobs": 2, "horizon": 1e15}),
        ("plafrim", {"jobs": 2, "horizon": 1e15}),
        ("plafrim", {"jobs": 10**30}),
        ("io-resources", {"jobs": 10**9}),
        ("targets", {"jobs": 10**9}),
        ("packs", {"jobs": 10**9}),
    ],
)
def test_a_generator_of_a_larger_workload_is_not_drawn(
    preset: str, options: dict[str, float]
) -> None:
    """The file has two jobs: what draws more cannot have drawn it, and is not tried."""
    jobs = two_jobs()
    jobs.generator = Generator(preset=preset, seed=1, options=dict(options))
    tracemalloc.start()
    draws = Draws.of("w", jobs, 3)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert draws.changed
    assert most < 50e6


@pytest.mark.parametrize(
    ("preset", "options", "message"),
    [
        ("io-sets", {"jobs": "60"}, "w: generator: option jobs of io-sets is '60'"),
        ("io-sets", {"jobs": 2.5}, "w: generator: option jobs of io-sets is 2.5; give a whole"),
        ("io-sets", {"jobs": -1}, "w: generator: "),
        ("io-sets", {"jobs": 2, "horizon": math.nan}, "w: generator: horizon = nan"),
        ("io-sets", {"jobs": 2, "omega": (1.0, 2.0)}, "w: generator: option omega"),
        ("io-sets", {"jobs": None}, "w: generator: option jobs of io-sets is None"),
        (
            "packs",
            {"jobs": 2, "alpha": 1.7e308, "size_factor": 1.7e308},
            "w: generator: its options cannot be drawn",
        ),
        ("packs", {"jobs": 2, "deviation": math.nan}, "w: generator: "),
    ],
)
def test_options_that_no_generator_takes_are_an_error(
    preset: str, options: dict[str, int | float | str | None], message: str
) -> None:
    jobs = two_jobs()
    jobs.generator = Generator(preset=preset, seed=1, options=dict(options))
    with pytest.raises(InputError, match=re.escape(message)):
        Draws.of("w", jobs, 3)
