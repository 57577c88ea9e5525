"""Synthetic workloads by the protocol of paper io-sets (Section V-B)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError
from penstock.sim.size_limit import check_size
from penstock.sim.workload import Floats, Workload

HORIZON = 20_000.0
SHORTEST_ITERATION = 1e-3
"""Draws of w_iter at or below this are repeated: they would give a job millions of iterations."""
PLAFRIM_SETS = (321, 1866, 1369, 435, 88, 9)
"""Jobs a set, S_0 to S_5, in a year of PlaFRIM's traces (paper io-sets, Section VIII)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A class of jobs: `count` of them with w_iter normal around `mean`."""

    count: int
    mean: float
    sd: float


HIGH, MEDIUM, LOW = 10.0, 100.0, 1000.0


def three_profiles(high: int, medium: int, low: int, *, spread: float = 0.1) -> list[Profile]:
    """Return the paper's classes: w_iter around 10, 100 and 1000 s, sd = spread x mean."""
    counts = zip((high, medium, low), (HIGH, MEDIUM, LOW), strict=True)
    return [Profile(count=count, mean=mean, sd=spread * mean) for count, mean in counts]


def io_sets(
    profiles: Sequence[Profile],
    *,
    seed: int | Sequence[int],
    omega: float = 0.8,
    noise: float = 0.1,
    horizon: float = HORIZON,
    most: int | None = None,
) -> Workload:
    """Draw a workload as the paper does (Section V-B), of at most `most` iterations.

    A job's w_iter comes from its profile, truncated to positive values; it has horizon / w_iter
    iterations (rounded up, so that every job lasts to the horizon), a release time uniform in
    [0, w_iter], an I/O ratio proportional to a uniform draw and scaled so that the ratios sum to
    `omega`, and phases that each vary uniformly by +-`noise`.
    """
    check_size(sum(profile.count for profile in profiles), most)
    rng = np.random.default_rng(seed)
    w_iter = np.concatenate([_positive_normal(rng, profile) for profile in profiles])
    means: Floats = np.array([p.mean for p in profiles], np.float64)
    profile = np.repeat(means, [p.count for p in profiles])
    return _draw(rng, w_iter, profile, omega=omega, noise=noise, horizon=horizon, most=most)


def plafrim(
    jobs: int = 60,
    *,
    seed: int | Sequence[int],
    omega: float = 0.8,
    noise: float = 0.1,
    horizon: float = HORIZON,
    most: int | None = None,
) -> Workload:
    """Draw jobs in PlaFRIM's shares of sets; inside its set, log10 w_iter is uniform (our choice).

    Jobs of the slowest sets have w_iter beyond the horizon and then run a single iteration.
    """
    _need_jobs(jobs)
    check_size(jobs, most)
    rng = np.random.default_rng(seed)
    shares = np.array(PLAFRIM_SETS) / sum(PLAFRIM_SETS)
    sets = rng.choice(len(shares), size=jobs, p=shares)
    w_iter = 10.0 ** (sets + rng.uniform(-0.5, 0.5, jobs))
    means = 10.0 ** sets.astype(np.float64)
    return _draw(rng, w_iter, means, omega=omega, noise=noise, horizon=horizon, most=most)


def periodic(
    w_iter: Sequence[float], alpha_io: Sequence[float], *, horizon: float, release: float = 0.0
) -> Workload:
    """Return strictly periodic jobs that are all released at once (paper io-sets, Section VI-A)."""
    w, alpha = np.array(w_iter, float), np.array(alpha_io, float)
    counts = np.maximum(1, np.ceil(horizon / w)).astype(np.int64)
    return Workload(
        compute=np.repeat((1 - alpha) * w, counts),
        io=np.repeat(alpha * w, counts),
        offsets=np.concatenate(([0], np.cumsum(counts))),
        release=np.full(len(w), release),
        profile=w,
        horizon=horizon,
    )


def _positive_normal(rng: np.random.Generator, profile: Profile) -> Floats:
    if profile.count < 0:
        raise InputError(f"a profile has {profile.count} jobs; give zero or more")
    if not 0 < profile.mean < math.inf or not 0 <= profile.sd < math.inf:
        raise InputError(
            f"a profile has mean {profile.mean:g} s and sd {profile.sd:g} s; give positive ones"
        )
    values = rng.normal(profile.mean, profile.sd, profile.count)
    for _ in range(1000):
        low = values <= SHORTEST_ITERATION
        if not low.any():
            return values
        values[low] = rng.normal(profile.mean, profile.sd, int(low.sum()))
    raise InputError(f"a profile of mean {profile.mean:g} hardly ever draws a positive w_iter")


def _io_ratios(rng: np.random.Generator, jobs: int, omega: float) -> Floats:
    """Return alpha_io uniform up to a factor that makes it sum to omega, each below one."""
    if not 0 < omega < jobs:
        raise InputError(
            f"omega = {omega:g} cannot be reached by {jobs} jobs: it is the sum of their I/O "
            f"ratios, so give more than 0 and less than {jobs}"
        )
    for _ in range(1000):
        alpha: Floats = rng.uniform(0, 1, jobs)
        alpha *= omega / alpha.sum()
        if alpha.max() < 1:
            return alpha
    raise InputError(
        f"omega = {omega:g} is not reached with {jobs} jobs: some job would do nothing but I/O; "
        "lower omega or add jobs"
    )


def _need_jobs(jobs: int) -> None:
    if jobs < 1:
        raise InputError(f"jobs = {jobs}; give at least 1")


def _draw(
    rng: np.random.Generator,
    w_iter: Floats,
    profile: Floats,
    *,
    omega: float,
    noise: float,
    horizon: float,
    most: int | None,
) -> Workload:
    _need_jobs(len(w_iter))
    if not 0 <= noise <= 1:
        raise InputError(f"noise = {noise:g}; give a value from 0 to 1")
    if not 0 < horizon < math.inf:
        raise InputError(f"horizon = {horizon:g}; give a positive number of seconds")
    each = np.maximum(1, np.ceil(horizon / w_iter))
    check_size(float(each.sum()), most)
    counts = each.astype(np.int64)
    release = rng.uniform(0, w_iter)
    alpha = _io_ratios(rng, len(w_iter), omega)
    total = int(counts.sum())
    compute = np.repeat((1 - alpha) * w_iter, counts)
    compute *= 1 + rng.uniform(-noise, noise, total)
    io = np.repeat(alpha * w_iter, counts)
    io *= 1 + rng.uniform(-noise, noise, total)
    return Workload(
        compute=compute,
        io=io,
        offsets=np.concatenate(([0], np.cumsum(counts))),
        release=release,
        profile=profile,
        horizon=horizon,
    )
