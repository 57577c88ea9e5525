"""Synthetic workloads by the protocol of paper packs (Section 6.2.2), and its Table 1.

The paper leaves four things open; each can be set here, and `penstock reproduce packs` shows what
it changes:

- the values of alpha_gen, printed as {0.5, 0.75, 1...10}: 39 in steps of a quarter (`ALPHAS`), or
  the 12 values 0.5, 0.75, 1, 2, ..., 10 (`TWELVE`).
- `loads`, the interval that a job's I/O load v / w is truncated to (printed as [x, y]): [0, 1].
- `deviation`, the spread of both normal distributions, printed as "variance sigma = 0.1": we take
  it for a standard deviation; a variance would be `deviation` = 0.316.
- `sizes`, the distribution on {2^0, ..., 2^11} of which only the mean Q is given: "binomial" draws
  the exponent from a binomial distribution, whose mean of 2^j is (1 + p)^11 in closed form;
  "geometric" weighs 2^j by a power r^j; "adjacent" draws one of the two powers beside the mean.
  "poisson" and "normal" (of deviation 3) centre the exponent, not the size, on log2 Q, so that
  sizes are larger than Q on average, and loads lower than alpha_gen.

`size_factor` multiplies the mean of the sizes. Other than 1 is not what the paper prints; its
footnote 3 calls Q a first approximation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy import optimize, stats

from penstock.errors import InputError, unknown
from penstock.model.load import io_occupation
from penstock.sim.workload import Floats, Longs, Workload

PARTITION = 2048
"""Compute nodes behind an I/O node."""
EXPONENTS = 12
"""Sizes are 2^0 to 2^11."""
LOW, HIGH = 0.1, 0.9
"""Means mu_1 and mu_2 of the I/O load v / w of the two classes."""
JOBS = (25, 100)
ITERATIONS = (250, 1000)
COMPUTE = (10.0, 100.0)
ALPHAS = tuple(np.arange(0.5, 10.01, 0.25).tolist())
"""The paper's alpha_gen, in steps of a quarter."""
TWELVE = (0.5, 0.75, *(float(k) for k in range(1, 11)))
"""The other way to read "{0.5, 0.75, 1...10}"."""
Sizes = Literal["binomial", "geometric", "adjacent", "poisson", "normal"]
SIZES: tuple[Sizes, ...] = get_args(Sizes)
EXPONENT_DEVIATION = 3.0
"""Standard deviation of the exponent where sizes are "normal"."""

TABLE_1 = (
    (32.0, 10.0, 250),
    (16.0, 5.0, 500),
    (8.0, 2.5, 1000),
    (8.0, 2.5, 1000),
    (16.0, 5.0, 500),
)
"""Compute and I/O seconds of an iteration, and iterations, of applications 1 to 5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the paper leaves open."""

    loads: tuple[float, float] = (0.0, 1.0)
    deviation: float = 0.1
    sizes: Sizes = "binomial"
    size_factor: float = 1.0

    def __post_init__(self) -> None:
        low, high = self.loads
        if self.sizes not in SIZES:
            raise unknown("distribution of sizes", self.sizes, SIZES)
        if not 0 < self.size_factor < np.inf:
            raise InputError(f"size factor is {self.size_factor:g}; give a positive number")
        if not (0 <= low < high and self.deviation > 0):
            raise InputError(
                f"loads {self.loads}, deviation {self.deviation:g}: give an interval of loads from "
                "zero on and a positive deviation"
            )


def packs(
    alpha_gen: float,
    *,
    seed: int | Sequence[int],
    partition: int = PARTITION,
    jobs: int | None = None,
    choices: Choices | None = None,
) -> Workload:
    """Draw a workload whose I/O occupation (Eq. 6) is about `alpha_gen`.

    A share beta, uniform in [0, 1], of the jobs has a low I/O load. By default there are 25 to
    100 jobs. Each has 250 to 1000 equal iterations with 10 to 100 s of computation, and a number of
    nodes that gives the occupation on average. All are released at once.
    """
    choices = choices or Choices()
    if not 0 < alpha_gen < np.inf:
        raise InputError(f"alpha_gen is {alpha_gen:g}; give a positive number")
    rng = np.random.default_rng(seed)
    beta = rng.uniform()
    n = int(rng.integers(JOBS[0], JOBS[1] + 1)) if jobs is None else jobs
    if n < 1:
        raise InputError(f"jobs = {n}; give at least 1")
    counts = rng.integers(ITERATIONS[0], ITERATIONS[1] + 1, n)
    compute = rng.uniform(*COMPUTE, n)
    means = np.where(np.arange(n) < round(beta * n), LOW, HIGH)
    io = compute * _loads(rng, means, choices)
    mean = beta * LOW + (1 - beta) * HIGH
    size = choices.size_factor * partition * mean / (alpha_gen * (1 + mean))
    nodes = _sizes(rng, n, size, choices.sizes)
    return Workload(
        compute=np.repeat(compute, counts),
        io=np.repeat(io, counts),
        offsets=np.concatenate(([0], np.cumsum(counts))),
        release=np.zeros(n),
        nodes=np.minimum(nodes, partition),
    )


def table_1(batches: int = 1, *, noise: float = 0.0, seed: int | Sequence[int] = 0) -> Workload:
    """Return the five applications of Table 1, each with `batches` times its iterations.

    With `noise`, each phase varies uniformly by up to that part of its length, as phases of a real
    machine do.
    """
    if batches < 1:
        raise InputError(f"batches = {batches}; give at least 1")
    if not 0 <= noise <= 1:
        raise InputError(f"noise = {noise:g}; give a value from 0 to 1")
    rng = np.random.default_rng(seed)

    def varied(lengths: Floats) -> Floats:
        return lengths * (1 + rng.uniform(-noise, noise, len(lengths)))

    compute, io, iterations = (np.array(column) for column in zip(*TABLE_1, strict=True))
    counts = batches * iterations
    return Workload(
        ids=[str(k) for k in range(1, len(TABLE_1) + 1)],
        compute=varied(np.repeat(compute, counts)),
        io=varied(np.repeat(io, counts)),
        offsets=np.concatenate(([0], np.cumsum(counts))),
        release=np.zeros(len(TABLE_1)),
    )


def alpha(workload: Workload, partition: int = PARTITION) -> float:
    """Return the I/O occupation of a workload on a partition (Eq. 6)."""
    compute, io = workload.total(workload.compute), workload.total(workload.io)
    return io_occupation(partition, workload.nodes, compute, io)


def _loads(rng: np.random.Generator, means: Floats, choices: Choices) -> Floats:
    low, high = ((end - means) / choices.deviation for end in choices.loads)
    drawn: Floats = stats.truncnorm.ppf(
        rng.uniform(size=len(means)), low, high, loc=means, scale=choices.deviation
    )
    return drawn


def _sizes(rng: np.random.Generator, n: int, mean: float, sizes: Sizes) -> Longs:
    """Return n powers of two around `mean`, which all but "poisson" and "normal" have."""
    exponents = np.arange(EXPONENTS)
    powers: Floats = np.exp2(exponents, dtype=np.float64)
    mean = float(np.clip(mean, 1.0, powers[-1]))
    if sizes == "binomial":
        p = mean ** (1 / (EXPONENTS - 1)) - 1
        weights = stats.binom.pmf(exponents, EXPONENTS - 1, p)
    elif sizes == "geometric":
        weights = _geometric(powers, mean)
    elif sizes == "poisson":
        weights = stats.poisson.pmf(exponents, np.log2(mean))
    elif sizes == "normal":
        weights = stats.norm.pdf(exponents, np.log2(mean), EXPONENT_DEVIATION)
    else:
        below = min(int(np.log2(mean)), EXPONENTS - 2)
        part = mean / powers[below] - 1
        weights = np.zeros(EXPONENTS)
        weights[below : below + 2] = 1 - part, part
    drawn: Longs = (1 << rng.choice(exponents, size=n, p=weights / weights.sum())).astype(np.int64)
    return drawn


def _geometric(powers: Floats, mean: float) -> Floats:
    """Return weights r^j of 2^j with that mean."""
    exponents: Floats = np.arange(len(powers), dtype=np.float64)

    def weights(log_r: float) -> Floats:
        shifted: Floats = log_r * exponents
        of_r: Floats = np.exp(shifted - shifted.max())
        return of_r

    def excess(log_r: float) -> float:
        w = weights(log_r)
        return float((w * powers).sum() / w.sum()) - mean

    # At these ends all but nothing is left beside the smallest and the largest power.
    least, most = -30.0, 30.0
    if not excess(least) < 0 < excess(most):
        return weights(least if mean < powers[1] else most)
    return weights(float(optimize.brentq(excess, least, most)))
