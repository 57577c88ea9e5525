"""Evaluate a placement: run jobs on their resources, measured as in paper io-resources.

A phase of volume v over n resources is n independent transfers of v / b(n) isolated seconds (Fig.
4); resources are shared evenly. The metrics (Section III-C) are taken over an interval [0, t] in
which no job ends and each completes a phase (V-D): t is the first end of a job, and where some job
has not completed a phase by then, all jobs go on repeating their phases and t is when it has.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.model import Curve, Job, JobId, ResourceId, Site
from penstock.model.load import io_stress
from penstock.policies.sharing.fair_share import FairShare
from penstock.sim.engine import simulate
from penstock.sim.knowledge import Knowledge
from penstock.sim.run import Run
from penstock.sim.workload import Floats, Longs, Workload

PHASES = 11
"""Phases of a job whose w_iter is unknown: the mean of the paper's {2, ..., 20}."""
Places = Sequence[tuple[ResourceId, ...]]
"""Every job's resources, in the order of the jobs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """The result of a placement; arrays have one entry per job."""

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
    """The part of the time that each resource is busy; None if not requested."""

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

    It uses the curve, volume, compute time, nodes and w_iter of a job; w_iter is the job's period
    with the fewest resources on its curve. `noise` is the range over which the compute time and
    the volume of each phase vary uniformly, drawn with `seed`; the paper's phases are all alike.
    With `apart`, each job has a part of its first compute phase behind it, uniform from none to
    all, also drawn with `seed`; the paper's jobs all begin together.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        site: Site,
        *,
        noise: float = 0.0,
        apart: bool = False,
        seed: int | Sequence[int] = 0,
    ) -> None:
        if not jobs:
            raise InputError("there are no jobs to place; give at least one")
        self.jobs = tuple(jobs)
        self.site = site
        self._noise, self._seed = noise, seed
        self._drawn = [np.ones((0, 2)) for _ in jobs]
        starts = np.random.default_rng([*np.atleast_1d(seed).tolist(), len(jobs)])
        self._left: Floats = starts.uniform(size=len(jobs)) if apart else np.ones(len(jobs))
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

    def simulate(self, places: Places, *, occupancy: bool = False) -> Outcome:
        """Run the jobs on their resources and measure what they get."""
        return self.simulate_all([places], occupancy=occupancy)[0]

    def simulate_all(
        self, candidates: Sequence[Places], *, occupancy: bool = False
    ) -> list[Outcome]:
        """Run the jobs on each of several placements.

        All go through the engine in one call, each on resources of its own, which costs much less
        than a call for each and changes no bit of what they get.
        """
        outcomes: dict[int, Outcome] = {}
        phases = np.tile(self.phases, (len(candidates), 1))
        todo = np.arange(len(candidates))
        while len(todo):
            workload = self.workload([candidates[int(k)] for k in todo], phases[todo])
            run = simulate(workload, FairShare(), site=self._site(len(todo)), timeline=occupancy)
            first = workload.offsets[:-1].reshape(-1, len(self.jobs))
            finish = run.finish.reshape(first.shape)
            one_phase = run.end[first].max(axis=1)
            one_job = run.end[first + self.phases - 1].min(axis=1)
            horizon = np.maximum(one_phase, one_job)
            over = finish.min(axis=1) >= horizon
            for k, outcome in zip(todo, self._measure(run, horizon), strict=True):
                outcomes[int(k)] = outcome
            # Whoever ended too early goes on as it went so far; the others have enough to do.
            longer = np.ceil(1.3 * phases[todo] * horizon[:, None] / finish).astype(np.int64)
            phases[todo] = np.where(finish < horizon[:, None], longer, phases[todo])
            todo = todo[~over]
        return [outcomes[k] for k in range(len(candidates))]

    def workload(self, candidates: Sequence[Places], phases: Longs) -> Workload:
        """Return what happens on several placements beside each other, a row of phases each."""
        counts = self._counts(candidates)
        each = phases.ravel()
        compute = np.repeat(np.tile(self.compute / self.phases, len(candidates)), each)
        alone = self.volume / self._alone(counts) / self.phases
        io = np.repeat(alone.ravel(), each)
        if self._noise:
            vary = np.concatenate([self._vary(row) for row in phases]).T
            compute, io = vary * (compute, io)
        offsets = _offsets(each)
        compute[offsets[:-1]] *= np.tile(self._left, len(candidates))
        where = np.fromiter(chain.from_iterable(chain.from_iterable(candidates)), np.int32)
        set_of = np.repeat(np.arange(len(candidates)), counts.sum(axis=1))
        return _Alike(
            compute=compute,
            io=io,
            offsets=offsets,
            release=np.zeros(counts.size),
            resource_offsets=_offsets(counts.ravel()),
            resources=where + set_of * self.site.resources,
        )

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

    def _site(self, candidates: int) -> Site:
        """Return a site with resources for several placements, on which all jobs begin at once."""
        return replace(self.site, resources=candidates * self.site.resources, nodes=0)

    def _alone(self, counts: Longs) -> Floats:
        """Return the bandwidth of each job without others."""
        alone: Floats = self.bandwidth[np.arange(len(self.jobs)), counts]
        return alone

    def _vary(self, phases: Longs) -> Floats:
        """Return factors for compute and I/O; drawn job by job, so that more phases change none."""
        seed = np.atleast_1d(self._seed).tolist()
        spread = (1 - self._noise, 1 + self._noise)
        for j, needed in enumerate(phases.tolist()):
            if len(self._drawn[j]) < needed:
                rng = np.random.default_rng([*seed, j])
                self._drawn[j] = rng.uniform(*spread, (2 * needed, 2))
        return np.concatenate([self._drawn[j][:needed] for j, needed in enumerate(phases)])

    def _counts(self, candidates: Sequence[Places]) -> Longs:
        counts: Longs = np.array([[len(where) for where in places] for places in candidates])
        if counts.shape != (len(candidates), len(self.jobs)):
            raise InputError(f"a placement has not one entry for each of {len(self.jobs)} jobs")
        used = [r for places in candidates for where in places for r in where]
        if used and not 0 <= min(used) <= max(used) < self.site.resources:
            raise InputError(
                f"a placement uses the resources {min(used)} to {max(used)}, "
                f"but the site has 0 to {self.site.resources - 1}"
            )
        known = np.append(self.bandwidth, np.full((len(self.jobs), 1), np.nan), axis=1)
        at = np.minimum(counts, known.shape[1] - 1)
        for k, j in np.argwhere(np.isnan(known[np.arange(len(self.jobs)), at])):
            raise InputError(
                f"job {self.jobs[j].id!r} got {counts[k, j]} resources, of which its curve says "
                "nothing; give it a count of its curve, without direct access"
            )
        return counts

    def _measure(self, run: Run, horizon: Floats) -> list[Outcome]:
        """Return what each placement gave until its horizon."""
        workload, shape = run.workload, (len(horizon), len(self.jobs))
        until = np.repeat(horizon, np.diff(workload.offsets[:: shape[1]]))
        counts = np.diff(workload.resource_offsets).reshape(shape)
        done = run.end <= until
        inside = np.minimum(run.end, until) - np.minimum(run.request, until)
        io_time, moved, idle = (
            workload.total(values).reshape(shape)
            for values in (
                np.where(done, run.end - run.request, 0.0),
                np.where(done, workload.io, 0.0),
                inside,
            )
        )
        alone = self._alone(counts)
        volume = moved * alone
        slowdown, by_count = io_time * self.peak / volume, self.peak / alone
        nodes = self.site.nodes or float(self.nodes.sum())
        idle_time = (idle * self.nodes).sum(axis=1) / (horizon * nodes)
        bandwidth = (volume / io_time).sum(axis=1)
        longest = (np.diff(workload.offsets).reshape(shape) / self.phases).max(axis=1)
        occupancy = None if run.timeline is None else _occupancy(run, horizon)
        return [
            Outcome(
                counts=counts[k],
                horizon=float(horizon[k]),
                extended=bool(longest[k] > 1),
                slowdown=slowdown[k],
                slowdown_io=by_count[k],
                idle_time=float(idle_time[k]),
                bandwidth=float(bandwidth[k]),
                occupancy=None if occupancy is None else occupancy[k],
            )
            for k in range(shape[0])
        ]


class _Alike(Workload):
    """Jobs that one stands for: fair-share looks at nothing of them, and making each takes time."""

    def jobs(self, knowledge: Knowledge | None = None) -> Iterator[Job]:  # noqa: ARG002
        return repeat(Job(id="any", serial=0), len(self))


def _occupancy(run: Run, horizon: Floats) -> Floats:
    """Return how busy each resource was: with a capacity of one, shares sum to one while it is."""
    rows = run.timeline
    assert rows is not None
    resources = run.site.resources
    until = np.repeat(horizon, resources // len(horizon))[rows.resource]
    inside = np.minimum(rows.end, until) - np.minimum(rows.start, until)
    busy = np.bincount(rows.resource, rows.share * inside, minlength=resources)
    return np.asarray(busy.reshape(len(horizon), -1) / horizon[:, None], np.float64)


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
