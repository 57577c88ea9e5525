"""The native fluid engine: exact, event by event, millions of events a second.

A policy reaches it in the cheapest form it allows. Groups and weights are functions of a job, so
they are asked for once a job and handed over as arrays; a `turn` that the engine knows by name
(`Sharing.order`) never comes back to Python; any other is called once a request, or at each
decision where it is dynamic. With learned knowledge, group and weight are asked for at each phase.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock.core.arbiter import Arbitrate
from penstock.errors import InputError
from penstock.learn.periods import Period
from penstock.model import (
    Assign,
    Event,
    Job,
    JobEnded,
    JobId,
    JobStarted,
    Request,
    ResourceId,
    Site,
    WakeAt,
    Woke,
)
from penstock.policies.base import Own, Sharing
from penstock.sim import _engine
from penstock.sim.checks import check
from penstock.sim.knowledge import Knowledge
from penstock.sim.run import Run, Timeline, check_answer
from penstock.sim.workload import Floats, Workload

ORDERS = {
    order.name.lower().replace("_", "-"): order
    for order in _engine.Order
    if order is not _engine.Order.HOST
}
"""The orders that the engine knows by the names that policies give them in `Sharing.order`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lowered:
    """A sharing policy as arrays and flags; the engine reads the fields by these names."""

    group: NDArray[np.int32]
    weight: Floats
    order: _engine.Order
    preemptive: bool
    dynamic: bool
    sampled: bool
    """Whether group and weight are asked of the host at every phase."""


def simulate(
    workload: Workload,
    sharing: Sharing,
    *,
    site: Site | None = None,
    knowledge: Knowledge | None = None,
    arbitrate: Arbitrate | None = None,
    timeline: bool = False,
) -> Run:
    """Run the workload to its end under a sharing policy and return the record.

    `arbitrate` (an Arbiter's `handle`) gives jobs resources when one starts or ends; without it
    they keep those that the workload names.
    """
    site = site or Site()
    knowledge = knowledge or Knowledge()
    check(workload, site)
    learned = knowledge.kind == "learned"
    order = _order(sharing)
    jobs: Iterable[Job] = workload.jobs(knowledge)
    host: _Host | None = None
    if learned or order is _engine.Order.HOST or arbitrate is not None:
        jobs = all_jobs = list(jobs)
        learn = Period if learned else None
        host = _Host(workload, sharing, all_jobs, site=site, learn=learn, arbitrate=arbitrate)
    if host is not None and learned:
        group, weight = np.zeros(len(workload), np.int32), np.ones(len(workload))
    else:
        group, weight = _lower(len(workload), jobs, sharing)
    lowered = _Lowered(
        group=group,
        weight=weight,
        order=order,
        preemptive=sharing.preemptive,
        dynamic=sharing.dynamic,
        sampled=learned,
    )
    result = _engine.run(
        workload=workload, site=site, sharing=lowered, host=host, timeline=timeline
    )
    assert result.unfinished == 0, "a job neither ended nor can go on"
    rows = result.timeline
    return Run(
        workload=workload,
        site=site,
        request=result.request,
        end=result.end,
        start=result.start,
        phase_ends=result.phase_ends,
        timeline=None
        if rows is None
        else Timeline.sorted(rows.job, rows.resource, rows.start, rows.end, rows.share),
    )


def _order(sharing: Sharing) -> _engine.Order:
    """Return the order that the engine is to use; HOST calls the policy's own `turn`."""
    if sharing.order is None:
        return _engine.Order.HOST
    if sharing.order not in ORDERS:
        raise InputError(
            f"order {sharing.order!r} is unknown to the engine; give None to call turn()"
        )
    return ORDERS[sharing.order]


def _lower(n: int, jobs: Iterable[Job], sharing: Sharing) -> tuple[NDArray[np.int32], Floats]:
    """Return every job's group as a number and its weight."""
    numbers = _GroupNumbers()
    group, weight = np.empty(n, np.int32), np.empty(n)
    for j, job in enumerate(jobs):
        group[j] = numbers.of(sharing.group(job))
        weight[j] = _checked(sharing.weight(job), job)
    return group, weight


def _checked(weight: float, job: Job) -> float:
    """Return the weight unless rates would overflow with it."""
    if not 1e-12 <= weight <= 1e12:
        raise InputError(f"weight() of job {job.id!r} is {weight}; give 1e-12 to 1e12")
    return weight


class _GroupNumbers:
    """Groups as small numbers, in order of appearance; a group of its own is OWN_GROUP."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, group: Hashable) -> int:
        if group is Own.GROUP:
            return _engine.OWN_GROUP
        return self._numbers.setdefault(group, len(self._numbers))


class _Host:
    """What the engine calls while it runs; it sets `view` before the first call."""

    view: _engine.EngineView

    def __init__(
        self,
        workload: Workload,
        sharing: Sharing,
        known: Sequence[Job],
        *,
        site: Site,
        learn: Callable[[], Period] | None,
        arbitrate: Arbitrate | None,
    ) -> None:
        self.jobs: dict[JobId, Job] = {}
        self.requests: list[Request | None] = [None] * len(known)
        self.site = site
        self.turn = sharing.turn
        self._workload = workload
        self._sharing = sharing
        self._known = list(known)
        self._arbitrate = arbitrate
        self._periods = None if learn is None else [learn() for _ in known]
        self._resources = [workload.resources_of(j) for j in range(len(known))]
        self._serial = {job.id: job.serial for job in known}
        self._numbers = _GroupNumbers()

    def requested(self, j: int) -> None:
        """Job j begins an I/O phase."""
        job = self._known[j]
        if self._periods is not None:
            job = replace(job, w_iter=self._periods[j].began(self.view.now))
            self._known[j] = self.jobs[job.id] = job
        self.requests[j] = Request(
            job=job,
            arrival=self.view.now,
            resources=self._resources[j],
            io=self.view.phase_io(j),
        )

    def sample(self, j: int) -> tuple[int, float]:
        """Return the group and weight of job j for the phase that begins."""
        job = self._known[j]
        weight = _checked(self._sharing.weight(job), job)
        return self._numbers.of(self._sharing.group(job)), weight

    def ended(self, j: int, io: float) -> None:
        """Job j's phase of `io` isolated seconds has ended."""
        if self._periods is not None:
            self._periods[j].ended(self.view.now, io)

    def on_job(
        self, kind: _engine.JobEvent, j: int
    ) -> tuple[list[tuple[int, tuple[ResourceId, ...], float]], list[float]]:
        """Ask who shall use what now that a job started or ended, or that its time has come."""
        event: Event
        if kind is _engine.JobEvent.STARTED:
            self.jobs[self._known[j].id] = self._known[j]
            event = JobStarted(time=self.view.now, job=self._known[j])
        elif kind is _engine.JobEvent.ENDED:
            del self.jobs[self._known[j].id]
            event = JobEnded(time=self.view.now, job=self._known[j].id)
        else:
            event = Woke(time=self.view.now)
        assignments, wake_at = [], []
        for action in self._arbitrate(event, self.view) if self._arbitrate is not None else ():
            check_answer(action, self._serial, self.site)
            match action:
                case Assign():
                    serial = self._serial[action.job]
                    self._resources[serial] = action.resources
                    scale = self._workload.io_scale(serial, len(action.resources))
                    assignments.append((serial, action.resources, scale))
                case WakeAt():
                    wake_at.append(action.time)
        return assignments, wake_at
