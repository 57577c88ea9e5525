"""What a number of resources costs the site and gives the job: paper io-resources, Section III.

All functions take arrays: a job's compute time, its volume and its bandwidth b(n), and the count n.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.model.curve import Curve

Floats = NDArray[np.float64]


def io_time(volume: ArrayLike, bandwidth: ArrayLike) -> Floats:
    """Return T_io(n) = V / b(n): the I/O time without congestion."""
    return np.asarray(volume, np.float64) / np.asarray(bandwidth, np.float64)


def io_stress(count: ArrayLike, compute: ArrayLike, io: ArrayLike) -> Floats:
    """Return I/O-Stress = n T_io / (T_cpu + T_io): the resource time that a second takes."""
    io = np.asarray(io, np.float64)
    stress: Floats = np.asarray(count) * io / (np.asarray(compute, np.float64) + io)
    return stress


def io_load(count: ArrayLike, compute: ArrayLike, io: ArrayLike, resources: int) -> Floats:
    """Return I/O-load: the sum of I/O-Stress over the jobs (the last axis), a resource (Eq. 3)."""
    load: Floats = io_stress(count, compute, io).sum(axis=-1) / resources
    return load


def cpu_load(nodes: ArrayLike, compute: ArrayLike, io: ArrayLike) -> Floats:
    """Return CPUload = Q T_cpu / (T_cpu + T_io): the nodes that compute on average."""
    compute = np.asarray(compute, np.float64)
    load: Floats = np.asarray(nodes) * compute / (compute + np.asarray(io, np.float64))
    return load


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
