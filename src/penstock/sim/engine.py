"""The native fluid engine: exact, event by event, millions of events a second.

A policy reaches it in the cheapest form it allows. Where groups and weights depend on the job alone
they are asked for once per job, and handed over as arrays; a `turn` that the engine knows never
comes back to Python: it is known by the function that would be called, so a subclass that
overrides `turn` is called. Any other is called once per request, or at each decision where it is
dynamic.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import cast

import numpy as np
from numpy.typing import NDArray

from penstock.core.arbiter import Arbitrate
from penstock.learn.periods import Period
from penstock.model import (
    Assign,
    Event,
    Job,
    JobEnded,
    JobId,
    JobStarted,
    PhaseBegan,
    PhaseEnded,
    Request,
    ResourceId,
    Site,
    View,
    WakeAt,
    Woke,
)
from penstock.policies._support.asking import guarded
from penstock.policies.base import ByArrival, Own, Rule, Sharing, without_trace
from penstock.policies.sharing.greedy_com import GreedyCom
from penstock.policies.sharing.greedy_yield import GreedyYield
from penstock.policies.sharing.longest_io import LongestIo
from penstock.policies.sharing.longest_remaining import LongestRemaining
from penstock.policies.sharing.lowest_id import LowestId
from penstock.policies.sharing.lowest_io_ratio import LowestIoRatio
from penstock.policies.sharing.shortest_io import ShortestIo
from penstock.policies.sharing.shortest_remaining import ShortestRemaining
from penstock.sim import _engine
from penstock.sim.checks import check
from penstock.sim.knowledge import Knowledge
from penstock.sim.run import Run, Timeline, check_answer
from penstock.sim.workload import Floats, Workload

ORDERS: Mapping[Callable[..., float], _engine.Order] = {
    ByArrival.turn: _engine.Order.ARRIVAL,
    GreedyCom.turn: _engine.Order.LEAST_LEFT,
    GreedyYield.turn: _engine.Order.YIELD,
    LongestIo.turn: _engine.Order.LONGEST_IO,
    LongestRemaining.turn: _engine.Order.MOST_WORK_LEFT,
    LowestId.turn: _engine.Order.SERIAL,
    LowestIoRatio.turn: _engine.Order.IO_RATIO,
    ShortestIo.turn: _engine.Order.SHORTEST_IO,
    ShortestRemaining.turn: _engine.Order.LEAST_WORK_LEFT,
}
"""The `turn` functions that the engine has a twin of."""


READ_ONCE = ("hedge", "unknown")
"""Options that the engine reads before the run: a policy that observes may change them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lowered:
    """A sharing policy, and what it is told, as arrays and numbers; the engine reads the fields."""

    group: NDArray[np.int32]
    weight: Floats
    order: _engine.Order
    hedge: float
    unknown: float
    places: int
    preemptive: bool
    dynamic: bool
    sampled: bool
    """Whether group and weight are asked of the host at every phase."""
    in_order: bool
    reweighs: bool
    observes: bool
    factor: Floats
    learned: bool
    part: Floats
    """The part of its first resources that each job can use when alone."""


def simulate(
    workload: Workload,
    sharing: Sharing,
    *,
    site: Site | None = None,
    knowledge: Knowledge | None = None,
    arbitrate: Arbitrate | None = None,
    marks: Iterable[float] = (),
    timeline: bool = False,
) -> Run:
    """Run the workload to its end under a sharing policy and return the record.

    `arbitrate` (an Arbiter's `handle`) gives jobs resources when one starts or ends; without it
    they keep those that the workload names. `marks` are the times at which the record has what
    each job had moved, beside the ends of the workload's steady part.
    """
    site = site or Site()
    knowledge = knowledge or Knowledge()
    check(workload, site)
    sharing = without_trace(sharing)
    rule = Rule(sharing)
    learned = knowledge.kind == "learned"
    order = order_of(sharing)
    if rule.observes and any(hasattr(sharing, name) for name in READ_ONCE):
        order = _engine.Order.HOST
    sampled = learned or not rule.depends_on_the_job_alone
    jobs: Iterable[Job] = workload.jobs(knowledge)
    host: _Host | None = None
    if sampled or order is _engine.Order.HOST or arbitrate is not None:
        jobs = all_jobs = list(jobs)
        learn = Period if learned else None
        host = _Host(workload, rule, all_jobs, site=site, learn=learn, arbitrate=arbitrate)
    if sampled:
        group, weight = np.zeros(len(workload), np.int32), np.ones(len(workload))
    else:
        group, weight = _lower(len(workload), jobs, rule)
    lowered = _Lowered(
        group=group,
        weight=weight,
        order=order,
        hedge=float(getattr(sharing, "hedge", 0.0)),
        unknown=float(getattr(sharing, "unknown", 0.0)),
        places=rule.places,
        preemptive=rule.preemptive,
        dynamic=rule.dynamic,
        sampled=sampled,
        in_order=rule.in_order,
        reweighs=rule.reweighs,
        observes=rule.observes,
        factor=workload.estimate_factors(knowledge),
        learned=learned,
        part=workload.parts(site),
    )
    times = sorted({*marks, *workload.steady_part})
    result = _engine.run(
        workload=workload, site=site, sharing=lowered, host=host, marks=times, timeline=timeline
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
        moved=dict(zip(times, result.moved.reshape(len(times), len(workload)), strict=True)),
    )


def order_of(sharing: Sharing) -> _engine.Order:
    """Return the engine's twin of the function that `turn` calls; HOST calls the policy's own."""
    return ORDERS.get(getattr(sharing.turn, "__func__", sharing.turn), _engine.Order.HOST)


def calls_python(sharing: Sharing) -> bool:
    """Tell whether the engine calls the policy while it runs."""
    return order_of(sharing) is _engine.Order.HOST or not Rule(sharing).depends_on_the_job_alone


def _lower(n: int, jobs: Iterable[Job], rule: Rule) -> tuple[NDArray[np.int32], Floats]:
    """Return every job's group as a number and its weight, which need no view."""
    numbers, view = _GroupNumbers(), cast(View, None)
    group, weight = np.empty(n, np.int32), np.empty(n)
    for j, job in enumerate(jobs):
        group[j] = numbers.of(rule.group(job, view))
        weight[j] = rule.weight(job, view)
    return group, weight


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
        rule: Rule,
        known: Sequence[Job],
        *,
        site: Site,
        learn: Callable[[], Period] | None,
        arbitrate: Arbitrate | None,
    ) -> None:
        self._running: dict[JobId, Job] = {}
        self.jobs = MappingProxyType(self._running)  # which policies see
        self.requests: list[Request | None] = [None] * len(known)
        self.site = site
        self.turn = guarded(rule.policy, "turn")
        self.wants_ends = learn is not None or rule.observes
        self._workload = workload
        self._rule = rule
        self._known = list(known)
        self._arbitrate = arbitrate
        self._periods = None if learn is None else [learn() for _ in known]
        self._resources = [workload.resources_of(j) for j in range(len(known))]
        self._serial = {job.id: job.serial for job in known}
        self._numbers = _GroupNumbers()

    def requested(self, j: int) -> float | None:
        """Job j begins an I/O phase; return when the policy wants to be woken."""
        job = self._known[j]
        if self._periods is not None:
            job = replace(job, w_iter=self._periods[j].began(self.view.now))
            self._known[j] = self._running[job.id] = job
        self.requests[j] = request = Request(
            job=job,
            arrival=self.view.now,
            resources=self._resources[j],
            io=self.view.expected_of(j),
        )
        if not self._rule.observes:
            return None
        event = PhaseBegan(
            time=request.arrival, job=job.id, resources=request.resources, io=request.io
        )
        return self._rule.observe(event, self.view)

    def sample(self, j: int) -> tuple[int, float]:
        """Return the group and weight of job j for the phase that begins."""
        job = self._known[j]
        group = self._numbers.of(self._rule.group(job, self.view))
        return group, self._rule.weight(job, self.view)

    def weight(self, j: int) -> float:
        """Return the weight of job j from now on."""
        return self._rule.weight(self._known[j], self.view)

    def places(self) -> int:
        """Return how many jobs of a group may transfer from now on."""
        return self._rule.places

    def ended(self, j: int, resource: ResourceId, io: float, last: bool) -> float | None:
        """Job j's part of a phase on a resource has ended, after `io` isolated seconds."""
        if last and self._periods is not None:
            self._periods[j].ended(self.view.now, io)
        event = PhaseEnded(time=self.view.now, job=self._known[j].id, resource=resource, io=io)
        return self._rule.observe(event, self.view)

    def on_job(
        self, kind: _engine.JobEvent, j: int
    ) -> tuple[list[tuple[int, tuple[ResourceId, ...], float, float]], list[float]]:
        """Ask who shall use what now that a job started or ended, or that its time has come."""
        event: Event
        if kind is _engine.JobEvent.STARTED:
            self._running[self._known[j].id] = self._known[j]
            event = JobStarted(time=self.view.now, job=self._known[j])
        elif kind is _engine.JobEvent.ENDED:
            del self._running[self._known[j].id]
            event = JobEnded(time=self.view.now, job=self._known[j].id)
        else:
            event = Woke(time=self.view.now)
        wake = self._rule.observe(event, self.view)
        assignments, wake_at = [], [] if wake is None else [wake]
        for action in self._arbitrate(event, self.view) if self._arbitrate is not None else ():
            check_answer(action, self._serial, self.site)
            match action:
                case Assign():
                    serial = self._serial[action.job]
                    self._resources[serial] = action.resources
                    count = len(action.resources)
                    scale = self._workload.io_scale(serial, count)
                    part = self._workload.part(serial, count, self.site)
                    assignments.append((serial, action.resources, scale, part))
                case WakeAt():
                    wake_at.append(action.time)
        return assignments, wake_at
