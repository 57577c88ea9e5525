"""Start-time fair queueing over groups, readable: the twin of native/ionode/fair_queue.hpp.

Each group, a job, has a scheduler of its own (penstock.live.schedulers); docs/schedulers.md has the
equations.
"""

from bisect import insort
from dataclasses import dataclass, field

from penstock.errors import InputError, unknown
from penstock.live.schedulers import KINDS, Batch, Request, Scheduler, Settings

CALL = 4096
"""What a batch costs a group on top of its bytes."""


@dataclass(slots=True, eq=False)
class _Group:
    scheduler: Scheduler
    waiting: Batch = field(default_factory=list)
    start: float = 0.0
    finish: float = 0.0


class FairQueue:
    """Start-time fair queueing over groups, each with a scheduler of its own."""

    def __init__(self, name: str, settings: Settings) -> None:
        if name not in KINDS:
            raise unknown("scheduler", name, KINDS)
        self._kind, self._settings = KINDS[name], settings
        self._groups: dict[int, _Group] = {}
        self._weights: dict[int, float] = {}
        self._backlogged: list[int] = []
        self._virtual_time = 0.0
        self._added = 0

    def add(self, request: Request) -> None:
        """Take a request in."""
        self._added += 1
        request.number = self._added
        if request.group not in self._groups:
            self._groups[request.group] = _Group(self._kind(self._settings))
        group = self._groups[request.group]
        if not group.waiting:
            group.start = max(self._virtual_time, group.finish)
            self._line_up(request.group)
        group.waiting.append(request)
        group.scheduler.add(request)

    def _line_up(self, group: int) -> None:
        insort(self._backlogged, group, key=lambda group: self._groups[group].start)

    def take(self, now: int, /) -> Batch:
        """Return what the ready group with the least start tag has to serve."""
        for number in self._backlogged:
            group = self._groups[number]
            if batch := group.scheduler.take(now):
                break
        else:
            return []
        self._virtual_time = max(self._virtual_time, group.start)
        cost = CALL + sum(request.bytes for request in batch)
        group.finish = self._virtual_time + cost / self._weights.get(number, 1.0)
        group.start = group.finish
        group.waiting = [request for request in group.waiting if request not in batch]
        self._backlogged.remove(number)
        if group.waiting:
            self._line_up(number)
        if not self._backlogged:  # a busy period ends: nobody owes anybody anything
            self._virtual_time = 0.0
            self._groups.clear()
        return batch

    def ready_at(self, now: int, /) -> int | None:
        """Return when `take` has something although nothing arrives; None if there is nothing."""
        ready = [self._groups[number].scheduler.ready_at(now) for number in self._backlogged]
        return min((time for time in ready if time is not None), default=None)

    def weigh(self, group: int, weight: float) -> None:
        """Give a group a weight, from its next batch on; others have weight 1."""
        if not 0 < weight < float("inf"):
            raise InputError(f"weight {weight} of group {group}; give a number above zero")
        self._weights[group] = weight
