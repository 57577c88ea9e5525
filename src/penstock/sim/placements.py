"""What a placement is worth: jobs on their resources, run and measured as in paper io-resources.

A phase of volume v over n resources is n independent transfers of v / b(n) isolated seconds (Fig.
4); resources are shared evenly. The metrics (Section III-C) are taken over an interval [0, t] in
which no job ends and each completes a phase (V-D): t is the first end of a job, and where some job
has not completed a phase by then, all jobs go on repeating their phases and t is when it has.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.model import Curve, Job, JobId, ResourceId, Site
from penstock.model.load import io_stress
from penstock.policies.sharing.fair_share import FairShare
from penstock.sim.engine import simulate
from penstock.sim.run import Run
from penstock.sim.workload import Floats, Longs, Workload

PHASES = 11
"""Phases of a job whose w_iter nobody knows: the mean of the paper's {2, ..., 20}."""
Places = Sequence[tuple[ResourceId, ...]]
"""Every job's resources, in the order of the jobs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What the jobs of a set got; arrays have an entry a job."""

    counts: Longs
    horizon: float
    """t, the end of the interval."""
    extended: bool
    """Jobs had to repeat their phases until each had completed one."""
    slowdown: Floats
    """rho: I/O time of completed phases over what it takes alone on n_perf resources."""
    slowdown_io: Floats
    """rho_io = b(n_perf) / b(n): what the count costs."""
    idle_time: float
    """Machine-IdleTime: node time in I/O over all node time."""
    bandwidth: float
    """Sum over jobs of the volume moved over the time it took, in the curves' unit."""
    occupancy: Floats | None = None
    """The part of the time that each resource is busy; None where it was not asked for."""

    @property
    def mean_slowdown(self) -> float:
        """Mean-I/O-SlowDown (Equation 4)."""
        return float(self.slowdown.mean())

    @property
    def max_slowdown(self) -> float:
        """Max-I/O-SlowDown."""
        return float(self.slowdown.max())

    @property
    def slowdown_congestion(self) -> Floats:
        """rho_con = rho - rho_io: what the others cost."""
        congestion: Floats = self.slowdown - self.slowdown_io
        return congestion

    @property
    def spread(self) -> float:
        """I/O-spread (Equation 5): the fullest resource's occupancy less the emptiest one's."""
        assert self.occupancy is not None, "ask for the occupancy"
        return float(np.ptp(self.occupancy))


class JobSet:
    """Jobs that run together on a site, ready to be simulated on many placements.

    Of a job it takes the curve, the volume, the compute time, the nodes and w_iter, which is its
    period with the fewest resources that its curve knows. With `noise`, each phase's compute time
    and volume vary uniformly by so much, drawn with `seed`; the paper's phases are all alike.
    """

    def __init__(
        self, jobs: Sequence[Job], site: Site, *, noise: float = 0.0, seed: int | Sequence[int] = 0
    ) -> None:
        if not jobs:
            raise InputError("there are no jobs to place; give at least one")
        self.jobs = tuple(jobs)
        self.site = site
        self._noise, self._seed = noise, seed
        self.nodes: Longs = np.array([job.nodes for job in jobs])
        self.compute: Floats = np.array([_known(job, "compute", job.compute) for job in jobs])
        self.volume: Floats = np.array([_positive(job) for job in jobs])
        self.bandwidth = np.array([_by_count(job, site.resources) for job in jobs])
        self.peak: Floats = np.nanmax(self.bandwidth, axis=1)
        alone = self.volume / np.array([row[~np.isnan(row)][0] for row in self.bandwidth])
        w_iter = np.array([np.nan if job.w_iter is None else job.w_iter for job in jobs])
        phases = np.rint((self.compute + alone) / w_iter)
        self.phases: Longs = np.maximum(1, np.where(np.isnan(phases), PHASES, phases)).astype(
            np.int64
        )

    def places(self, places: Mapping[JobId, tuple[ResourceId, ...]]) -> Places:
        """Return a placer's answer in the order of the jobs."""
        return [tuple(sorted(places[job.id])) for job in self.jobs]

    def workload(self, places: Places, phases: Longs | None = None) -> Workload:
        """Return what happens on these resources, with other numbers of phases than the jobs'."""
        counts = self._counts(places)
        phases = self.phases if phases is None else phases
        compute = np.repeat(self.compute / self.phases, phases)
        io = np.repeat(self.volume / self._alone(counts) / self.phases, phases)
        if self._noise:
            compute, io = self._vary(phases) * (compute, io)
        return Workload(
            compute=compute,
            io=io,
            offsets=_offsets(phases),
            release=np.zeros(len(counts)),
            nodes=self.nodes,
            resource_offsets=_offsets(counts),
            resources=np.fromiter(chain.from_iterable(places), np.int32),
            ids=[job.id for job in self.jobs],
        )

    def simulate(self, places: Places, *, occupancy: bool = False) -> Outcome:
        """Run the jobs on their resources and measure what they get."""
        phases = self.phases
        while True:
            workload = self.workload(places, phases)
            run = simulate(workload, FairShare(), site=self.site, timeline=occupancy)
            first, finish = workload.offsets[:-1], run.finish
            one_phase, one_job = run.end[first].max(), run.end[first + self.phases - 1].min()
            horizon = float(max(one_phase, one_job))
            if horizon <= finish.min():
                return self._measure(run, horizon)
            # Whoever ended too early goes on as it went so far; the others have enough to do.
            longer = np.ceil(1.05 * phases * horizon / finish).astype(np.int64)
            phases = np.where(finish < horizon, longer, phases)

    @property
    def stress(self) -> Floats:
        """I/O-Stress of every job (row) at every count (column) of its curve; NaN at others."""
        io = self.volume[:, None] / self.bandwidth
        return io_stress(np.arange(io.shape[1]), self.compute[:, None], io)

    @property
    def least_load(self) -> float:
        """I/O-load(pi_sys): the least that any allocation has."""
        return float(np.nanmin(self.stress, axis=1).sum()) / self.site.resources

    def load(self, counts: Longs) -> float:
        """I/O-load of an allocation (Equation 3)."""
        return float(self.stress[np.arange(len(counts)), counts].sum()) / self.site.resources

    def _alone(self, counts: Longs) -> Floats:
        """Return the bandwidth of each job without others."""
        alone: Floats = self.bandwidth[np.arange(len(counts)), counts]
        return alone

    def _vary(self, phases: Longs) -> Floats:
        """Return factors for compute and I/O; drawn job by job, so that more phases change none."""
        rngs = (np.random.default_rng([*np.atleast_1d(self._seed), j]) for j in range(len(phases)))
        spread = (1 - self._noise, 1 + self._noise)
        drawn = [rng.uniform(*spread, (p, 2)) for rng, p in zip(rngs, phases, strict=True)]
        return np.concatenate(drawn).T

    def _counts(self, places: Places) -> Longs:
        counts: Longs = np.array([len(where) for where in places])
        known = self.bandwidth.shape[1]
        for job, n, row in zip(self.jobs, counts.tolist(), self.bandwidth, strict=True):
            if not 0 < n < known or np.isnan(row[n]):
                raise InputError(
                    f"job {job.id!r} got {n} resources, of which its curve says nothing; "
                    "give it a count of its curve, without direct access"
                )
        return counts

    def _measure(self, run: Run, horizon: float) -> Outcome:
        workload = run.workload
        counts = np.diff(workload.resource_offsets)
        alone = self._alone(counts)
        done = run.end <= horizon
        io_time = workload.total(np.where(done, run.end - run.request, 0.0))
        volume = workload.total(np.where(done, workload.io, 0.0)) * alone
        inside = np.minimum(run.end, horizon) - np.minimum(run.request, horizon)
        idle = float(workload.total(inside) @ self.nodes)
        return Outcome(
            counts=counts,
            horizon=horizon,
            extended=workload.iterations > int(self.phases.sum()),
            slowdown=io_time * self.peak / volume,
            slowdown_io=self.peak / alone,
            idle_time=idle / (horizon * (self.site.nodes or float(self.nodes.sum()))),
            bandwidth=float((volume / io_time).sum()),
            occupancy=None if run.timeline is None else _occupancy(run, horizon),
        )


def _occupancy(run: Run, horizon: float) -> Floats:
    """Return how busy each resource was: with a capacity of one, shares sum to one while it is."""
    rows = run.timeline
    assert rows is not None
    inside = np.minimum(rows.end, horizon) - np.minimum(rows.start, horizon)
    busy = np.bincount(rows.resource, rows.share * inside, minlength=run.site.resources)
    return np.asarray(busy / horizon, np.float64)


def _offsets(lengths: NDArray[np.int64]) -> Longs:
    return np.concatenate(([0], np.cumsum(lengths)))


def _known(job: Job, what: str, value: float | None) -> float:
    if value is None:
        raise InputError(f"job {job.id!r} has no {what}, which a simulation of it needs; tell it")
    return value


def _positive(job: Job) -> float:
    volume = _known(job, "volume", job.volume)
    if not volume > 0:
        raise InputError(f"job {job.id!r} has the volume {volume:g}; leave out jobs without I/O")
    return volume


def _by_count(job: Job, resources: int) -> tuple[float, ...]:
    """Return the bandwidth at each count from 0 on; NaN where it is not known, or direct."""
    if job.curve is None:
        raise InputError(f"job {job.id!r} has no curve, which a simulation of it needs; tell it")
    values = _bandwidths(job.curve, resources)
    if all(map(math.isnan, values)):
        raise InputError(
            f"job {job.id!r} has a curve at {list(job.curve.counts)}, "
            f"none of which can be had with {resources} resources"
        )
    return values


@lru_cache(maxsize=4096)
def _bandwidths(curve: Curve, resources: int) -> tuple[float, ...]:
    known = curve.choices(resources, direct=False)
    values = dict(zip(known, curve.at(known).tolist(), strict=True))
    return tuple(values.get(n, math.nan) for n in range(resources + 1))
