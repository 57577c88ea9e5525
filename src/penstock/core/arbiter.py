"""Which resources running jobs have: decided anew whenever a job starts or ends.

The allocator says how many each job gets, the placer which ones (paper forwarding, Section 5.6.3).
A job that starts has its resources at once. One that runs is moved only if its count changes (or by
a `joint` placer, which decides for all), and hears of it `remap_delay` seconds later, as GekkoFWD's
clients do, which ask every ten seconds; what is decided meanwhile it hears then too. Under a
`sticky` allocator no running job is moved.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import InputError
from penstock.model import (
    Action,
    Assign,
    Event,
    JobEnded,
    JobId,
    JobStarted,
    ResourceId,
    View,
    WakeAt,
    Woke,
)
from penstock.policies.base import Allocator, Placer

Arbitrate = Callable[[Event, View], Sequence[Action]]
"""Asked when a job starts or ends, or at a time it asked for; answers with Assign and WakeAt."""
Places = tuple[ResourceId, ...]


@dataclass(slots=True)
class _Move:
    """A running job's next resources, and when it hears of them."""

    time: float
    resources: Places


class Arbiter:
    """Runs the allocator and the placer on every change of the set of running jobs."""

    def __init__(
        self,
        *,
        allocator: Allocator,
        placer: Placer,
        remap_delay: float = 0.0,
        lenient: bool = False,
    ) -> None:
        """A `lenient` one, of a live site, moves nobody where its policies cannot answer."""
        if not remap_delay >= 0:
            raise InputError(f"remap-delay is {remap_delay}; give seconds, zero or more")
        self.allocator = allocator
        self.placer = placer
        self.remap_delay = remap_delay
        self.lenient = lenient
        self.refusals = 0
        """How often a lenient one had no answer."""
        self.moves = 0
        """How often a running job was moved."""
        self._decided: dict[JobId, Places] = {}
        self._started: dict[JobId, float] = {}
        self._pending: dict[JobId, _Move] = {}

    def handle(self, event: Event, view: View) -> list[Action]:
        """Take in what happened and return who shall use what."""
        match event:
            case JobStarted():
                self._started[event.job.id] = event.time
                return self._decide(event.time, view)
            case JobEnded():
                for known in (self._decided, self._started, self._pending):
                    known.pop(event.job, None)
                return self._decide(event.time, view) if view.jobs else []
            case Woke():
                return self._deliver(event.time)
        return []

    def _decide(self, now: float, view: View) -> list[Action]:
        try:
            return self._decided_anew(now, view)
        except InputError:
            if not self.lenient:
                raise
            self.refusals += 1
            return []

    def _decided_anew(self, now: float, view: View) -> list[Action]:
        counts = self._counts(view)
        decided = dict(self._decided)
        joint = getattr(self.placer, "joint", False) and not self.allocator.sticky
        asked = {
            job: count
            for job, count in counts.items()
            if joint or job not in decided or len(decided[job]) != count
        }
        known = decided if joint else {j: r for j, r in decided.items() if j not in asked}
        actions: list[Action] = []
        for job, resources in place(self.placer, view, asked, known).items():
            # In which order a job names its resources is nothing to tell it.
            if job in decided and set(decided[job]) == set(resources):
                continue
            self._decided[job] = resources
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
            counts |= {job: len(resources) for job, resources in self._decided.items()}
        return counts

    def _assign(self, job: JobId, resources: Places, now: float) -> Assign:
        self.moves += self._started[job] != now
        return Assign(job=job, resources=resources)

    def _deliver(self, now: float) -> list[Action]:
        due = [job for job, move in self._pending.items() if move.time <= now]
        return [self._assign(job, self._pending.pop(job).resources, now) for job in due]


def allocate(allocator: Allocator, view: View) -> dict[JobId, int]:
    """Return a count for every job, or raise InputError for an answer that cannot be followed."""
    name, site = type(allocator).__name__, view.site
    answer = allocator.allocate(view)
    if not isinstance(answer, Mapping):
        raise InputError(f"{name} answered {answer!r}; allocate() must return counts by job")
    _same_jobs(name, answer, view.jobs)
    for job, count in answer.items():
        if not isinstance(count, int) or not (0 if site.direct else 1) <= count <= site.resources:
            path = "" if site.direct else " and no direct access"
            raise InputError(
                f"{name} gives job {job!r} {count!r} resources; the site has {site.resources}{path}"
            )
    return dict(answer)


def place(
    placer: Placer, view: View, counts: Mapping[JobId, int], staying: Mapping[JobId, Places]
) -> dict[JobId, Places]:
    """Return the resources of every job in `counts`, or raise InputError as `allocate` does."""
    wanted = {job: count for job, count in counts.items() if count > 0}
    name, site = type(placer).__name__, view.site
    # Who goes direct from now on gives its resources back.
    stay = {j: r for j, r in staying.items() if r and (j in wanted or j not in counts)}
    answer = placer.place(view, wanted, stay)
    if not isinstance(answer, Mapping):
        raise InputError(f"{name} answered {answer!r}; place() must return resources by job")
    _same_jobs(name, answer, wanted)
    for job, resources in answer.items():
        there = isinstance(resources, tuple | list) and all(
            isinstance(r, int) and 0 <= r < site.resources for r in resources
        )
        if not there or not len(set(resources)) == len(resources) == wanted[job]:
            raise InputError(
                f"{name} gives job {job!r} the resources {resources!r}; it must be {wanted[job]} "
                f"distinct ones of 0 to {site.resources - 1}"
            )
    return {job: tuple(answer[job]) if job in wanted else () for job in counts}


def _same_jobs(name: str, answer: Mapping[JobId, object], jobs: Iterable[JobId]) -> None:
    asked = set(jobs)
    for job in asked:
        if job not in answer:
            raise InputError(f"{name} says nothing of job {job!r}; it must answer for every job")
    for job in answer:
        if job not in asked:
            raise InputError(f"{name} answers for {job!r}, which is no job that it was asked about")
