"""The binary files through which a workload reaches a simulator that is not Python.

A workload file holds, little-endian and without padding::

    int64    n_jobs
    int64    n_iterations            total over the jobs
    float64  release[n_jobs]
    int64    offsets[n_jobs + 1]     iterations of job j: offsets[j] to offsets[j + 1] - 1
    float64  compute[n_iterations]   seconds
    float64  io[n_iterations]        isolated seconds on a resource of capacity 1
    int64    group[n_jobs]           -1: a group of its own, the job never waits for a turn
    float64  weight[n_jobs]

A phases file holds ``float64 request[n_iterations]`` (the compute phase ended
and the I/O was asked for) and ``float64 end[n_iterations]`` (the I/O ended).
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Seconds = NDArray[np.float64]


class Workload(Protocol):
    """What really happens: the phases of every job, job after job."""

    @property
    def release(self) -> ArrayLike: ...
    @property
    def offsets(self) -> ArrayLike: ...
    @property
    def compute(self) -> ArrayLike: ...
    @property
    def io(self) -> ArrayLike: ...


def write_workload(path: Path, workload: Workload, group: ArrayLike, weight: ArrayLike) -> None:
    release = np.asarray(workload.release, "<f8")
    compute = np.asarray(workload.compute, "<f8")
    arrays = (
        np.array([release.size, compute.size], "<i8"),
        release,
        np.asarray(workload.offsets, "<i8"),
        compute,
        np.asarray(workload.io, "<f8"),
        np.asarray(group, "<i8"),
        np.asarray(weight, "<f8"),
    )
    with path.open("wb") as file:
        for array in arrays:
            file.write(array.tobytes())


def read_phases(path: Path) -> tuple[Seconds, Seconds]:
    request, end = np.fromfile(path, "<f8").reshape(2, -1)
    return request, end
