"""Shares of users and their jobs, readable: the twin of native/ionode/{fair,user}_queue.hpp.

Each group, a job, has a scheduler of its own (parity.reference.schedulers); docs/live/schedulers.md
has the equations.
"""

from bisect import insort
from collections import Counter
from collections.abc import Callable
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

    def __init__(
        self, make: Callable[[], Scheduler], group_of: Callable[[Request], int], shares: str
    ) -> None:
        self._make, self._group_of = make, group_of
        self._concurrency = shares == "concurrency"
        self._groups: dict[int, _Group] = {}
        self._weights: dict[int, float] = {}
        self._in_service: Counter[int] = Counter()  # batches
        self._backlogged: list[int] = []
        self._virtual_time = 0.0

    def add(self, request: Request) -> None:
        """Take a request in."""
        number = self._group_of(request)
        if number not in self._groups:
            self._groups[number] = _Group(self._make())
        group = self._groups[number]
        if not group.waiting:
            group.tag = max(self._virtual_time, group.finish)
            if self._concurrency:
                group.tag = self._load(number)
            self._line_up(number)
        group.waiting.append(request)
        group.scheduler.add(request)

    def _line_up(self, group: int) -> None:
        insort(self._backlogged, group, key=lambda group: self._groups[group].tag)

    def _load(self, group: int) -> float:
        return self._in_service[group] / self.weight(group)

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
            group.tag = self._virtual_time + cost / self.weight(number)
            group.finish = group.tag
        group.waiting = [request for request in group.waiting if request not in batch]
        self._backlogged.remove(number)
        if group.waiting:
            self._line_up(number)
        if not self._backlogged:  # a busy period ends: nobody owes anybody anything
            self._virtual_time = 0.0
            for idle in self._groups.values():
                idle.finish = 0.0
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
        self._weights[group] = weight
        self._reload(group)

    def weight(self, group: int) -> float:
        """Return a group's weight."""
        return self._weights.get(group, 1.0)

    def heaviest(self) -> float:
        """Return the largest weight of the groups that have requests, waiting or in service."""
        active = {*self._backlogged, *(+self._in_service)}
        return max(map(self.weight, active), default=1.0)


class UserQueue:
    """Users share first, each with the weight of its heaviest job; then the jobs of each do."""

    def __init__(self, name: str, settings: Settings) -> None:
        if name not in KINDS:
            raise unknown("scheduler", name, KINDS)
        if settings.shares not in SHARES:
            raise unknown("kind of shares", settings.shares, SHARES)
        self._kind, self._settings = KINDS[name], settings
        self._jobs: dict[int, FairQueue] = {}
        self._making: int = 0
        self._users = FairQueue(
            lambda: self._jobs_of(self._making), lambda request: request.user, settings.shares
        )
        self._added = 0

    def _jobs_of(self, user: int) -> FairQueue:
        if user not in self._jobs:
            self._jobs[user] = FairQueue(
                lambda: self._kind(self._settings),
                lambda request: request.group,
                self._settings.shares,
            )
        return self._jobs[user]

    def _weigh_user(self, user: int) -> None:
        weight = self._jobs_of(user).heaviest()
        if weight != self._users.weight(user):
            self._users.weigh(user, weight)

    def add(self, request: Request) -> None:
        """Take a request in."""
        self._added += 1
        request.number = self._added
        self._making = request.user
        self._users.add(request)
        self._weigh_user(request.user)

    def take(self, now: int, /) -> Batch:
        """Return what the ready job with the least tag, of the ready user with it, has to serve."""
        return self._users.take(now)

    def served(self, group: int, user: int = 0) -> None:
        """Hear that a batch of a user's job, which `take` gave, is in service no more."""
        self._users.served(user)
        self._jobs_of(user).served(group)
        self._weigh_user(user)

    def ready_at(self, now: int, /) -> int | None:
        """Return when `take` has something although nothing arrives; None if there is nothing."""
        return self._users.ready_at(now)

    def weigh(self, group: int, weight: float, user: int = 0) -> None:
        """Give a user's job a weight, from the next batch on; others have weight 1."""
        if not 0 < weight < float("inf"):
            raise InputError(f"weight {weight} of group {group}; give a number above zero")
        self._jobs_of(user).weigh(group, weight)
        self._weigh_user(user)
