"""Shares of groups, readable: the twin of native/ionode/fair_queue.hpp.

Each group, a job, has a scheduler of its own (parity.reference.schedulers); docs/live/schedulers.md
has the equations.
"""

from bisect import insort
from collections import Counter
from dataclasses import dataclass, field

from parity.reference.schedulers import KINDS, Batch, Request, Scheduler, Settings

from penstock.errors import InputError, unknown

CALL = 4096
"""What a batch costs a group on top of its bytes."""
SHARES = ("bytes", "concurrency")
"""What groups share by weight."""


@dataclass(slots=True, eq=False)
class _Group:
    scheduler: Scheduler
    waiting: Batch = field(default_factory=list)
    tag: float = 0.0
    finish: float = 0.0


class FairQueue:
    """The ready group with the least tag is served: shares of bytes, or of concurrency."""

    def __init__(self, name: str, settings: Settings) -> None:
        if name not in KINDS:
            raise unknown("scheduler", name, KINDS)
        if settings.shares not in SHARES:
            raise unknown("kind of shares", settings.shares, SHARES)
        self._kind, self._settings = KINDS[name], settings
        self._concurrency = settings.shares == "concurrency"
        self._groups: dict[int, _Group] = {}
        self._weights: dict[int, float] = {}
        self._in_service: Counter[int] = Counter()  # batches
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
            group.tag = max(self._virtual_time, group.finish)
            if self._concurrency:
                group.tag = self._load(request.group)
            self._line_up(request.group)
        group.waiting.append(request)
        group.scheduler.add(request)

    def _line_up(self, group: int) -> None:
        insort(self._backlogged, group, key=lambda group: self._groups[group].tag)

    def _load(self, group: int) -> float:
        return self._in_service[group] / self._weights.get(group, 1.0)

    def _reload(self, group: int) -> None:
        if self._concurrency and group in self._backlogged:
            self._groups[group].tag = self._load(group)
            self._backlogged.remove(group)
            self._line_up(group)

    def take(self, now: int, /) -> Batch:
        """Return what the ready group with the least tag has to serve."""
        for number in self._backlogged:
            group = self._groups[number]
            if batch := group.scheduler.take(now):
                break
        else:
            return []
        self._in_service[number] += 1
        if self._concurrency:
            group.tag = self._load(number)
        else:
            self._virtual_time = max(self._virtual_time, group.tag)
            cost = CALL + sum(request.bytes for request in batch)
            group.tag = self._virtual_time + cost / self._weights.get(number, 1.0)
            group.finish = group.tag
        group.waiting = [request for request in group.waiting if request not in batch]
        self._backlogged.remove(number)
        if group.waiting:
            self._line_up(number)
        if not self._backlogged:  # a busy period ends: nobody owes anybody anything
            self._virtual_time = 0.0
            self._groups.clear()
        return batch

    def served(self, group: int) -> None:
        """Hear that a batch of the group, which `take` gave, is in service no more."""
        if self._in_service[group]:
            self._in_service[group] -= 1
            self._reload(group)

    def ready_at(self, now: int, /) -> int | None:
        """Return when `take` has something although nothing arrives; None if there is nothing."""
        ready = [self._groups[number].scheduler.ready_at(now) for number in self._backlogged]
        return min((time for time in ready if time is not None), default=None)

    def weigh(self, group: int, weight: float) -> None:
        """Give a group a weight, from the next batch on; others have weight 1."""
        if not 0 < weight < float("inf"):
            raise InputError(f"weight {weight} of group {group}; give a number above zero")
        self._weights[group] = weight
        self._reload(group)
