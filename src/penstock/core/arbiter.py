"""Assigns resources to jobs whenever a job starts or ends, or a resource comes or goes.

The allocator says how many each job gets, the placer which ones (paper forwarding, Section 5.6.3).
A job that starts gets its resources at once. A running job is moved only if its count changes, one
of its resources is gone, or a `joint` placer decides for all jobs; the Assign comes `remap_delay`
seconds later (GekkoFWD's clients ask every ten seconds), with what was decided last by then. Under
a `sticky` allocator a running job keeps its count.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.errors import InputError
from penstock.model import (
    Action,
    Assign,
    Event,
    JobEnded,
    JobId,
    JobStarted,
    NodeDown,
    NodeUp,
    ResourceId,
    View,
    WakeAt,
    Woke,
)
from penstock.policies._support.asking import ask, shown
from penstock.policies.base import Allocator, Placer

Arbitrate = Callable[[Event, View], Sequence[Action]]
"""Handles an event that is not of a phase; returns Assign and WakeAt."""
Resources = tuple[ResourceId, ...]


@dataclass(slots=True)
class _Move:
    """A running job's next resources, and when to send them."""

    time: float
    resources: Resources


class Arbiter:
    """Runs the allocator and the placer whenever the jobs or the usable resources change."""

    def __init__(
        self,
        *,
        allocator: Allocator,
        placer: Placer,
        remap_delay: float = 0.0,
        lenient: bool = False,
    ) -> None:
        """A `lenient` one (of a live site) moves no job where its policies raise InputError."""
        if not remap_delay >= 0:
            raise InputError(f"remap-delay is {remap_delay}; give seconds, zero or more")
        self.allocator = allocator
        self.placer = placer
        self.remap_delay = remap_delay
        self.lenient = lenient
        self.refusals = 0
        """Times that a lenient arbiter had no answer."""
        self.moves = 0
        """Times that a running job was moved."""
        self.assigned: dict[JobId, Resources] = {}
        """The resources that each job has, or will have once its Assign is sent."""
        self._started: dict[JobId, float] = {}
        self._pending: dict[JobId, _Move] = {}
        self._down: set[ResourceId] = set()

    def handle(self, event: Event, view: View) -> list[Action]:
        """Return the assignments that follow from an event."""
        match event:
            case JobStarted():
                self._started[event.job.id] = event.time
                return self._decide(event.time, view)
            case JobEnded():
                for of_job in (self.assigned, self._started, self._pending):
                    of_job.pop(event.job, None)
                return self._decide(event.time, view) if view.jobs else []
            case NodeUp():
                self._down.discard(event.resource)
                return self._decide(event.time, view) if view.jobs else []
            case NodeDown():
                self._down.add(event.resource)
                return self._decide(event.time, view) if view.jobs else []
            case Woke():
                return self._deliver(event.time)
        return []

    def _decide(self, now: float, view: View) -> list[Action]:
        try:
            return self._changes(now, view)
        except InputError:
            if not self.lenient:
                raise
            self.refusals += 1
            return []

    def _changes(self, now: float, view: View) -> list[Action]:
        usable = [r for r in range(view.site.resources) if r not in self._down]
        if not usable:
            return []  # nothing to choose from: jobs keep what they have
        if self._down:
            view = _UsableView(view, len(usable))
        # Policies number the usable resources from 0.
        number = {resource: k for k, resource in enumerate(usable)}
        decided = {
            job: tuple(number[r] for r in resources if r in number)
            for job, resources in self.assigned.items()
        }
        counts = self._counts(view)
        joint = getattr(self.placer, "joint", False) and not self.allocator.sticky
        to_place = {
            job: count
            for job, count in counts.items()
            if joint
            or job not in decided
            or len(decided[job]) != count
            or len(self.assigned[job]) != count  # one of its resources is gone
        }
        staying = decided if joint else {j: r for j, r in decided.items() if j not in to_place}
        actions: list[Action] = []
        for job, places in place(self.placer, view, to_place, staying).items():
            resources = tuple(usable[k] for k in places)
            # The order in which a job's resources are named makes no difference.
            if job in self.assigned and set(self.assigned[job]) == set(resources):
                continue
            self.assigned[job] = resources
            if self._started[job] == now or self.remap_delay == 0:
                self._pending.pop(job, None)
                actions.append(self._assign(job, resources, now))
            elif job in self._pending:
                self._pending[job].resources = resources
            else:
                self._pending[job] = _Move(now + self.remap_delay, resources)
                actions.append(WakeAt(time=now + self.remap_delay))
        return actions

    def _counts(self, view: View) -> Mapping[JobId, int]:
        counts = allocate(self.allocator, view)
        if self.allocator.sticky:
            most = view.site.resources
            counts |= {job: min(len(had), most) for job, had in self.assigned.items()}
        return counts

    def _assign(self, job: JobId, resources: Resources, now: float) -> Assign:
        self.moves += self._started[job] != now
        return Assign(job=job, resources=resources)

    def _deliver(self, now: float) -> list[Action]:
        due = [job for job, move in self._pending.items() if move.time <= now]
        return [self._assign(job, self._pending.pop(job).resources, now) for job in due]


class _UsableView:
    """A host's view of a site where only some resources serve."""

    def __init__(self, view: View, resources: int) -> None:
        self.site = replace(view.site, resources=resources)
        self.now, self.jobs = view.now, view.jobs
        self.progress, self.age, self.work_left = view.progress, view.age, view.work_left
        self.io_done, self.expected = view.io_done, view.expected
        self.done, self.remaining = view.done, view.remaining


def allocate(allocator: Allocator, view: View) -> dict[JobId, int]:
    """Return one count per job; InputError: the allocator's answer is invalid."""
    name, site = type(allocator).__name__, view.site

    def plain(answer: object) -> dict[JobId, int]:
        if not isinstance(answer, Mapping):
            raise InputError(
                f"{name} answered {shown(answer)}; allocate() must return counts by job"
            )
        _same_jobs(name, answer, view.jobs)
        for job, count in answer.items():
            if (
                not isinstance(count, int)
                or not (0 if site.direct else 1) <= count <= site.resources
            ):
                path = "" if site.direct else " and no direct access"
                raise InputError(
                    f"{name} gives job {job!r} {shown(count)} resources; "
                    f"the site has {site.resources}{path}"
                )
        return {str.__str__(job): int.__int__(count) for job, count in answer.items()}

    counts: dict[JobId, int] = ask(allocator, "allocate", view, plain=plain)
    return counts


def place(
    placer: Placer, view: View, counts: Mapping[JobId, int], staying: Mapping[JobId, Resources]
) -> dict[JobId, Resources]:
    """Return the resources of every job in `counts`; InputError: the placer's answer is invalid."""
    requested = {job: count for job, count in counts.items() if count > 0}
    name, site = type(placer).__name__, view.site
    # A job that goes direct from now on frees its resources.
    stay = {j: r for j, r in staying.items() if r and (j in requested or j not in counts)}

    def plain(answer: object) -> dict[JobId, Resources]:
        if not isinstance(answer, Mapping):
            raise InputError(
                f"{name} answered {shown(answer)}; place() must return resources by job"
            )
        _same_jobs(name, answer, requested)
        for job, resources in answer.items():
            valid = isinstance(resources, tuple | list) and all(
                isinstance(r, int) and 0 <= r < site.resources for r in resources
            )
            if not valid or not len(set(resources)) == len(resources) == requested[job]:
                raise InputError(
                    f"{name} gives job {job!r} the resources {shown(resources)}; "
                    f"it must be {requested[job]} distinct ones of 0 to {site.resources - 1}"
                )
        return {
            job: tuple(map(int.__int__, answer[job])) if job in requested else () for job in counts
        }

    places: dict[JobId, Resources] = ask(placer, "place", view, requested, stay, plain=plain)
    return places


def _same_jobs(name: str, answer: Mapping[JobId, object], jobs: Iterable[JobId]) -> None:
    expected = set(jobs)
    for job in expected:
        if job not in answer:
            raise InputError(f"{name} left out job {job!r}; it must answer for every job")
    for job in answer:
        if job not in expected:
            raise InputError(f"{name} answers for {job!r}, which is not one of the jobs to decide")
