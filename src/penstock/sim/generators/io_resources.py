"""Synthetic sets of jobs by the protocol of paper io-resources (Section V-C).

The protocol draws a job's bandwidth curve from a data set, its number of phases from {2, ..., 20},
its compute nodes so that 10 / 30 / 60% of the jobs have 75 / 20 / 5% of the machine, and the ratio
X of its compute to its I/O time on one resource uniformly from [0, b]. Compute and I/O on one
resource are 5000 s together. E(1 / (1 + X)) = log(1 + b) / b is the mean I/O-Stress of a job on one
resource, so that log(1 + b) = b theta N / K makes the expected I/O-load(pi_1) theta.

What the paper leaves open. K, the number of jobs: 40, the largest for which these shares of 480
nodes are whole nodes (4 jobs of 90, 12 of 8, 24 of 1). Counts above those that were measured: none,
a curve ends where its measurements do. Direct access: none. All jobs begin together.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import lambertw

from penstock import data
from penstock.errors import InputError, error_prefix
from penstock.model import Curve, Job, Site
from penstock.sim.workload import Workload

SITE = Site(name="io-resources", nodes=480, resources=20)
JOBS = 40
SPAN = 5000.0
"""Seconds of compute and of I/O on one resource together, of every job."""
PHASES = (2, 20)
SIZES = ((0.1, 0.75), (0.3, 0.2), (0.6, 0.05))
"""Large, medium and small jobs: their part of the jobs, and of the compute nodes."""
OST_CURVES = 301
"""As many as the paper measured on PlaFRIM. Its authors publish the measurements (Section V-B names
where); they could not be fetched for Penstock, whose curves are synthetic. `measured_ost_curves`
reads them where a user has them."""
OST_FILE = "ost-curves.csv"


def io_resources(
    theta: float,
    *,
    seed: int | Sequence[int],
    jobs: int = JOBS,
    curves: Sequence[Curve] | None = None,
    site: Site = SITE,
) -> list[Job]:
    """Draw a set of jobs whose I/O-load with one resource each is `theta` in expectation."""
    rng = np.random.default_rng(seed)
    known = mn4_curves() if curves is None else curves
    bound = ratio_bound(theta, jobs, site.resources)
    nodes = job_sizes(jobs, site.nodes)
    which = rng.integers(len(known), size=jobs).tolist()
    phases = rng.integers(PHASES[0], PHASES[1] + 1, size=jobs).tolist()
    io = (SPAN / (1 + rng.uniform(0, bound, size=jobs))).tolist()
    return [
        Job(
            id=str(j),
            serial=j,
            nodes=nodes[j],
            w_iter=SPAN / phases[j],
            curve=known[which[j]],
            volume=io[j] * known[which[j]].bandwidth(1),
            compute=SPAN - io[j],
        )
        for j in range(jobs)
    ]


def on_one_resource(jobs: Sequence[Job]) -> Workload:
    """Return the jobs, all on one resource, with the curves that tell what more would do."""
    phases = np.array([round(SPAN / job.w_iter) for job in jobs if job.w_iter])
    compute = np.array([job.compute for job in jobs], np.float64)
    return Workload(
        ids=[job.id for job in jobs],
        nodes=[job.nodes for job in jobs],
        compute=np.repeat(compute / phases, phases),
        io=np.repeat((SPAN - compute) / phases, phases),
        offsets=np.concatenate(([0], np.cumsum(phases))),
        release=np.zeros(len(jobs)),
        curves=[job.curve for job in jobs],
    )


def ratio_bound(theta: float, jobs: int, resources: int) -> float:
    """Return the positive b with log(1 + b) = b theta N / K."""
    if jobs < 1:
        raise InputError(f"jobs = {jobs}; give at least 1")
    stress = theta * resources / jobs
    if not 0 < stress < 1:
        raise InputError(
            f"theta N / K = {theta:g} x {resources} / {jobs} = {stress:g}: it is the mean "
            "I/O-Stress of a job on one resource, which lies between 0 and 1; "
            f"give theta between 0 and {jobs / resources:g}, or more jobs"
        )
    # With y = -stress (1 + b): y exp(y) = -stress exp(-stress), on the branch where y < -1.
    bound = float(-lambertw(-stress * math.exp(-stress), -1).real / stress - 1)
    if not 1e-6 < bound < 1e6:
        raise InputError(
            f"theta N / K = {stress:g} is so near to {round(stress)} that jobs would do "
            f"{'nothing but I/O' if stress > 0.5 else 'no I/O'}; give another theta"
        )
    return bound


def job_sizes(jobs: int, nodes: int) -> list[int]:
    """Return the compute nodes of each job, large ones first; a class shares its part evenly."""
    numbers = [round(part * jobs) for part, _ in SIZES[:-1]]
    numbers.append(jobs - sum(numbers))
    sizes: list[int] = []
    for number, (_, share) in zip(numbers, SIZES, strict=True):
        whole = round(share * nodes)
        if whole < number:
            raise InputError(
                f"{number} of {jobs} jobs would share {whole} of {nodes} compute nodes; "
                "give fewer jobs or more nodes"
            )
        sizes += [whole // number + (k < whole % number) for k in range(number)]
    return sizes


@cache
def mn4_curves() -> tuple[Curve, ...]:
    """Return the 189 curves of MareNostrum 4, means over repetitions, without direct access."""
    means = (pattern.curve() for pattern in data.mn4_patterns())
    return tuple(Curve.of({n: c.bandwidth(n) for n in c.forwarded}) for c in means)


@dataclass(frozen=True, slots=True, kw_only=True)
class OstProfile:
    """How synthetic curves over storage targets are drawn; our choice, for want of the measured.

    With one target a job has a bandwidth spread log-uniformly over `decades`. A part `flat` of the
    jobs gains nothing from more targets; the others gain as b(n) = b(1) n / (1 + s (n - 1)), with
    the part s that does not scale uniform in `serial`. Each point is off by a log-normal `noise`.
    """

    targets: int = 8
    flat: float = 0.2
    serial: tuple[float, float] = (0.1, 0.6)
    decades: tuple[float, float] = (1.5, 3.0)
    noise: float = 0.03


@cache
def ost_curves(
    count: int = OST_CURVES, *, seed: int = 0, profile: OstProfile | None = None
) -> tuple[Curve, ...]:
    """Draw synthetic curves over 1 to 8 storage targets: most rise and saturate, some are flat."""
    profile = profile or OstProfile()
    rng = np.random.default_rng([seed, count])
    n = np.arange(1, profile.targets + 1)
    drawn = []
    for _ in range(count):
        alone = 10.0 ** rng.uniform(*profile.decades)
        serial = 1.0 if rng.random() < profile.flat else rng.uniform(*profile.serial)
        noise = np.exp(rng.normal(0, profile.noise, len(n)))
        values = alone * n / (1 + serial * (n - 1)) * noise
        drawn.append(Curve(counts=tuple(n.tolist()), bandwidths=tuple(values.tolist())))
    return tuple(drawn)


def measured_ost_curves(path: Path) -> tuple[Curve, ...]:
    """Read measured curves over storage targets, one per configuration, means over repetitions.

    A CSV file with the columns `configuration`, `targets` and `bandwidth` (in any one unit), one
    row per measurement.
    """
    values: dict[str, dict[int, list[float]]] = {}
    with error_prefix(str(path)), path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        if missing := {"configuration", "targets", "bandwidth"} - set(rows.fieldnames or ()):
            raise InputError(f"no column {', '.join(sorted(missing))}")
        for row in rows:
            try:
                targets, bandwidth = int(row["targets"]), float(row["bandwidth"])
            except (TypeError, ValueError) as error:
                raise InputError(f"line {rows.line_num}: {error}") from error
            if targets < 1 or not 0 < bandwidth < math.inf:
                raise InputError(f"line {rows.line_num}: give positive targets and bandwidth")
            known = values.setdefault(row["configuration"], {})
            known.setdefault(targets, []).append(bandwidth)
        if not values:
            raise InputError("it has no measurements")
        for name, known in values.items():
            if 1 not in known:
                raise InputError(f"configuration {name!r} was not measured with one target")
    return tuple(
        Curve.of({n: float(np.mean(known[n])) for n in sorted(known)}) for known in values.values()
    )
