"""What a number of resources costs the site and gives the job: paper io-resources, Section III.

Most functions take arrays: a job's compute time, its volume and its bandwidth b(n), and the count
n. Those on time behind a single resource, paper packs, Section 4, take a job and its site.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.errors import InputError
from penstock.model.curve import Curve
from penstock.model.job import Job
from penstock.model.site import Site

Floats = NDArray[np.float64]


def io_time(volume: ArrayLike, bandwidth: ArrayLike) -> Floats:
    """Return T_io(n) = V / b(n): the I/O time without congestion."""
    return np.asarray(volume, np.float64) / np.asarray(bandwidth, np.float64)


def io_stress(count: ArrayLike, compute: ArrayLike, io: ArrayLike) -> Floats:
    """Return I/O-Stress = n T_io / (T_cpu + T_io): the resource time that a second takes."""
    io = np.asarray(io, np.float64)
    stress: Floats = np.asarray(count) * _part(io, np.asarray(compute, np.float64) + io)
    return stress


def io_load(count: ArrayLike, compute: ArrayLike, io: ArrayLike, resources: int) -> Floats:
    """Return I/O-load: the sum of I/O-Stress over the jobs (the last axis), a resource (Eq. 3)."""
    load: Floats = io_stress(count, compute, io).sum(axis=-1) / resources
    return load


def cpu_load(nodes: ArrayLike, compute: ArrayLike, io: ArrayLike) -> Floats:
    """Return CPUload = Q T_cpu / (T_cpu + T_io): the nodes that compute on average."""
    compute = np.asarray(compute, np.float64)
    load: Floats = np.asarray(nodes) * _part(compute, compute + np.asarray(io, np.float64))
    return load


def _part(time: Floats, whole: Floats) -> Floats:
    """Return time / whole; of a job that does nothing at all, nothing."""
    time, whole = np.broadcast_arrays(time, whole)
    return np.divide(time, whole, out=np.zeros(whole.shape), where=whole != 0)


def isolated_io(job: Job, site: Site) -> float:
    """Return V / b: the I/O time of a job that has one resource to itself.

    b is the job's curve at one resource, else the part of the site's bandwidth that the job can
    use; a site without a bandwidth has one, so that volumes are in seconds of a whole resource.
    """
    if job.volume is None or not 0 <= job.volume < math.inf:
        raise InputError(f"job {job.id!r} has {_unusable('volume', job.volume)}; give its volume")
    if job.curve is None:
        return job.volume / (site.bandwidth or 1.0) / job.max_share
    try:
        return job.volume / job.curve.bandwidth(1)
    except InputError as error:
        raise InputError(f"job {job.id!r}: {error}") from error


def isolated_time(job: Job, site: Site) -> float:
    """Return T(b) = compute + V / b, the job's time alone behind one resource (packs, Eq. 1)."""
    if job.compute is None or not 0 <= job.compute < math.inf:
        raise InputError(f"job {job.id!r} has {_unusable('compute', job.compute)}; give seconds")
    time = job.compute + isolated_io(job, site)
    if not 0 < time < math.inf:
        raise InputError(
            f"job {job.id!r} takes {time:g} s alone; give it a compute time or a volume"
        )
    return time


def _unusable(name: str, value: float | None) -> str:
    return f"no {name}" if value is None else f"{name} {value:g}"


def io_occupation(partition: int, nodes: ArrayLike, compute: ArrayLike, io: ArrayLike) -> float:
    """Return alpha = P sum of I/O / sum of Q T (packs, Eq. 6), T a job's compute plus its I/O.

    How much I/O time a partition of P nodes asks of its resource each second, were its nodes
    never idle: above one, the resource and not the nodes decides how long everything takes.
    """
    io = np.asarray(io, np.float64)
    node_time = np.asarray(nodes) * (np.asarray(compute, np.float64) + io)
    return float(partition * io.sum() / node_time.sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Options:
    """What each count would mean for one job: arrays over its choices, counts rising."""

    counts: NDArray[np.int64]
    bandwidth: Floats
    io: Floats
    stress: Floats
    cpu: Floats

    @classmethod
    def of(
        cls, curve: Curve, counts: Sequence[int], *, nodes: int, compute: float, volume: float
    ) -> "Options":
        """Return the options of a job at some counts."""
        n = np.array(counts, np.int64)
        bandwidth = curve.at(counts)
        io = io_time(volume, bandwidth)
        return cls(
            counts=n,
            bandwidth=bandwidth,
            io=io,
            stress=io_stress(n, compute, io),
            cpu=cpu_load(nodes, compute, io),
        )

    @property
    def n_perf(self) -> int:
        """The count with the highest bandwidth; of equals the smaller."""
        return int(self.counts[int(self.bandwidth.argmax())])

    @property
    def n_sys(self) -> int:
        """The count with the least I/O-Stress; of equals the smaller."""
        return int(self.counts[int(self.stress.argmin())])

    def index(self, count: int) -> int:
        """Return where a count stands."""
        return int(np.searchsorted(self.counts, count))
