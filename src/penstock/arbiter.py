"""Which resources running jobs have: decided anew whenever a job starts or ends.

The allocator says how many each job gets, the placer which ones (paper forwarding, Section 5.6.3).
A job that starts has its resources at once. One that runs is moved only if its count changes, and
hears of it `remap_delay` seconds later, as GekkoFWD's clients do, which ask every ten seconds; what
is decided meanwhile it hears then too. Under a `sticky` allocator no running job is moved.
"""

from collections.abc import Callable, Mapping, Sequence
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

    def __init__(self, *, allocator: Allocator, placer: Placer, remap_delay: float = 0.0) -> None:
        if not remap_delay >= 0:
            raise InputError(f"remap-delay is {remap_delay}; give seconds, zero or more")
        self.allocator = allocator
        self.placer = placer
        self.remap_delay = remap_delay
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
        counts = self._counts(view)
        changed = {
            job: count
            for job, count in counts.items()
            if job not in self._decided or len(self._decided[job]) != count
        }
        staying = {j: r for j, r in self._decided.items() if j not in changed and r}
        places = self.placer.place(view, {j: n for j, n in changed.items() if n > 0}, staying)
        actions: list[Action] = []
        for job, count in changed.items():
            self._decided[job] = places[job] if count > 0 else ()
            if self._started[job] == now or self.remap_delay == 0:
                self._pending.pop(job, None)
                actions.append(self._assign(job, self._decided[job], now))
            elif job in self._pending:
                self._pending[job].resources = self._decided[job]
            else:
                self._pending[job] = _Move(now + self.remap_delay, self._decided[job])
                actions.append(WakeAt(time=now + self.remap_delay))
        return actions

    def _counts(self, view: View) -> Mapping[JobId, int]:
        counts = self.allocator.allocate(view)
        if self.allocator.sticky:
            kept = {job: len(resources) for job, resources in self._decided.items()}
            counts = dict(counts) | kept
        for job, count in counts.items():
            least = 0 if view.site.direct else 1
            if not least <= count <= view.site.resources:
                raise InputError(
                    f"{type(self.allocator).__name__} gives job {job!r} {count} resources; the "
                    f"site has {view.site.resources}"
                    + ("" if view.site.direct else " and no direct access")
                )
        return counts

    def _assign(self, job: JobId, resources: Places, now: float) -> Assign:
        self.moves += self._started[job] != now
        return Assign(job=job, resources=resources)

    def _deliver(self, now: float) -> list[Action]:
        due = [job for job, move in self._pending.items() if move.time <= now]
        return [self._assign(job, self._pending.pop(job).resources, now) for job in due]
