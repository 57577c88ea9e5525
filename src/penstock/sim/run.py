"""The record of a simulated run: when each phase was asked for and when it ended."""

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.model import Action, Assign, JobId, Site, WakeAt
from penstock.sim.workload import Workload

Floats = NDArray[np.float64]


def check_answer(answer: Action, jobs: Container[JobId], site: Site) -> None:
    """Raise InputError unless a hook's answer can be followed: the engine trusts its numbers."""
    match answer:
        case Assign(job=job, resources=places):
            distinct = len(set(places)) == len(places) and (len(places) > 0 or site.direct)
            there = all(isinstance(r, int) and 0 <= r < site.resources for r in places)
            possible = job in jobs and distinct and there
        case WakeAt(time=time):
            possible = not math.isnan(time)
        case _:
            possible = False
    if not possible:
        raise InputError(
            f"a job hook answered {answer!r}; it may Assign a job of the workload distinct "
            f"resources from 0 to {site.resources - 1}, and WakeAt a time"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """Who transferred when, where, and at which share: one row per stretch of constant share."""

    job: NDArray[np.int32]
    resource: NDArray[np.int32]
    start: Floats
    end: Floats
    share: Floats

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, float, float, float]]) -> "Timeline":
        """Make a timeline of (job, resource, start, end, share) rows, in any order."""
        job, resource, start, end, share = zip(*rows, strict=True) if rows else ((),) * 5
        return cls.sorted(
            np.array(job, np.int32),
            np.array(resource, np.int32),
            np.array(start, float),
            np.array(end, float),
            np.array(share, float),
        )

    @classmethod
    def sorted(
        cls,
        job: NDArray[np.int32],
        resource: NDArray[np.int32],
        start: Floats,
        end: Floats,
        share: Floats,
    ) -> "Timeline":
        """Make a timeline, ordered by start, resource and job."""
        by = np.lexsort((job, resource, start))
        return cls(
            job=job[by], resource=resource[by], start=start[by], end=end[by], share=share[by]
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """Iteration i computed until `request[i]`, then waited and transferred until `end[i]`.

    A job's first iteration began at `start[j]`, every later one where the one before it ended.
    `moved` has what each job had done of the I/O phase that it was in, in isolated seconds, at
    certain times; None for a record of a live site, which does not know it. `released` counts the
    phases that transferred without a turn (as live, where waits are bounded).
    """

    workload: Workload
    site: Site
    request: Floats
    end: Floats
    start: Floats
    phase_ends: int
    timeline: Timeline | None = None
    moved: Mapping[float, Floats] | None = None
    released: int = 0

    @property
    def finish(self) -> Floats:
        """When each job ended."""
        return self.end[self.workload.offsets[1:] - 1]

    @property
    def makespan(self) -> float:
        """When the last job ended."""
        return float(self.end.max())
