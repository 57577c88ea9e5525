from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.model import Job, JobId, Request, Site

class EngineView:
    @property
    def now(self) -> float: ...
    @property
    def jobs(self) -> Mapping[JobId, Job]: ...
    @property
    def site(self) -> Site: ...
    def progress(self, job: Job) -> float: ...
    def work_left(self, job: Job) -> float: ...
    def io_done(self, job: Job) -> float: ...
    def age(self, job: Job) -> float: ...
    def remaining(self, request: Request) -> float: ...
    def phase_io(self, serial: int) -> float: ...

Rows = tuple[
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
]

def run(
    *,
    compute: NDArray[np.float64],
    io: NDArray[np.float64],
    offsets: NDArray[np.int64],
    release: NDArray[np.float64],
    work: NDArray[np.float64],
    nodes: NDArray[np.int64],
    max_share: NDArray[np.float64],
    resource_offsets: NDArray[np.int64],
    resources: NDArray[np.int32],
    barrier: NDArray[np.int32],
    after: NDArray[np.int32],
    site_resources: int,
    site_nodes: int,
    capacity: NDArray[np.float64],
    group: NDArray[np.int32],
    weight: NDArray[np.float64],
    order: int,
    preemptive: bool,
    dynamic: bool,
    sampled: bool,
    host: Any,
    hook_jobs: bool,
    keep_timeline: bool,
    request: NDArray[np.float64],
    end: NDArray[np.float64],
    start: NDArray[np.float64],
) -> tuple[int, int, Rows | None]: ...
