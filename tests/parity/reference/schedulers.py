"""The I/O nodes' request schedulers, readable: twins of native/ionode/schedulers.

An I/O node runs the native ones; these say in a few lines what each of them does, and a test holds
both against each other. Times are nanoseconds; docs/live/schedulers.md has the ideas and the
papers.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

LARGEST_BATCH = 1024
"""Requests that one vectored call takes at most."""
LEVELS = 6
"""So often the quantum of mlf doubles at most."""
BATCHES_OF_A_SWEEP = 64
"""So often a file's sweep goes on from its oldest request."""
LONGEST_WAIT = 1_000_000_000
"""Nanoseconds after which sjf serves a request in any case."""


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """One read, write or sync of a client."""

    id: int
    arrived: int
    file: int
    kind: str
    offset: int = 0
    bytes: int = 0
    server: int = 0
    group: int = 0
    user: int = 0
    number: int = 0  # given by the fair queue: the order of arrival

    @property
    def end(self) -> int:
        """Return the offset behind its last byte."""
        return self.offset + self.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of all schedulers; each uses its own."""

    window: int = 1_000_000
    quantum: int = 64 << 10
    aggregation: int = 4 << 20
    servers: int = 1
    io_node: int = 0
    shares: str = "bytes"  # or concurrency: what the fair queue shares


Batch = list[Request]


class Scheduler(Protocol):
    """Requests in, batches of contiguous ones out."""

    def __init__(self, settings: Settings) -> None: ...

    def add(self, request: Request) -> None:
        """Take a request in."""

    def take(self, now: int, /) -> Batch:
        """Return what to serve now; nothing before `ready_at`."""

    def ready_at(self, now: int, /) -> int | None:
        """Return when `take` has something although nothing arrives; None if there is nothing."""


def _bytes(requests: Iterable[Request]) -> int:
    return sum(request.bytes for request in requests)


def _extend(
    batch: Batch, queue: Batch, limit: int, touches: Callable[[Request], bool]
) -> Request | None:
    """Take the oldest request that touches the batch from the queue, if it fits in."""
    first = batch[0]
    candidates = [
        request
        for request in queue
        if (request.file, request.kind) == (first.file, first.kind) and touches(request)
    ]
    request = min(candidates, key=lambda request: request.number, default=None)
    if request is None or first.kind == "sync" or len(batch) == LARGEST_BATCH:
        return None
    if _bytes(batch) + request.bytes > limit:
        return None
    queue.remove(request)
    return request


def _take_along(first: Request, queue: Batch, limit: int, *, before: bool) -> Batch:
    """Take the first from the queue, with what continues it within the limit of bytes."""
    queue.remove(first)
    batch = [first]
    while before and (request := _extend(batch, queue, limit, lambda r: r.end == batch[0].offset)):
        batch.insert(0, request)
    while request := _extend(batch, queue, limit, lambda r: r.offset == batch[-1].end):
        batch.append(request)
    return batch


class Fifo:
    """Requests one by one, in the order of their arrival."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.queue: Batch = []

    def add(self, request: Request) -> None:
        """Take a request in."""
        self.queue.append(request)

    def take(self, _now: int, /) -> Batch:
        """Return the oldest."""
        return [self.queue.pop(0)] if self.queue else []

    def ready_at(self, now: int, /) -> int | None:
        """Return now, if there is anything."""
        return now if self.queue else None


class TimeOrder(Fifo):
    """The oldest request, with what is contiguous to it, before and after."""

    def take(self, _now: int, /) -> Batch:
        """Return the oldest and its neighbours."""
        if not self.queue:
            return []
        return _take_along(self.queue[0], self.queue, self.settings.aggregation, before=True)


class Twins(Fifo):
    """One server a window; asleep while its queue is empty."""

    def _queue_of(self, request: Request) -> int:
        return (request.server + self.settings.io_node) % self.settings.servers

    def _windows_ahead(self, now: int) -> int:
        window, servers = now // self.settings.window, self.settings.servers
        return min((self._queue_of(request) - window) % servers for request in self.queue)

    def _take_of(self, requests: Batch) -> Batch:
        batch = _take_along(requests[0], requests, self.settings.aggregation, before=True)
        self.queue = [request for request in self.queue if request not in batch]
        return batch

    def take(self, now: int, /) -> Batch:
        """Return the oldest of the window's queue, and its neighbours in it."""
        ready = self.ready_at(now)
        if ready is None or ready > now:
            return []
        number = now // self.settings.window + self._windows_ahead(now)
        queue = number % self.settings.servers
        return self._take_of([r for r in self.queue if self._queue_of(r) == queue])

    def ready_at(self, now: int, /) -> int | None:
        """Return when the first window comes whose queue has something."""
        if not self.queue:
            return None
        window = now // self.settings.window + self._windows_ahead(now)
        return max(now, window * self.settings.window)


class TwinsBusy(Twins):
    """As twins, but serves the queue whose window comes next instead of sleeping."""

    def ready_at(self, now: int, /) -> int | None:
        """Return now, if there is anything."""
        return now if self.queue else None


class TwinsPriority(Twins):
    """Algorithm 1: sorted by window of arrival, then server."""

    def priority(self, request: Request) -> int:
        """Return a request's place in the list."""
        window = request.arrived // self.settings.window
        return window * self.settings.servers + self._queue_of(request)

    def take(self, _now: int, /) -> Batch:
        """Return the first of the list, and its neighbours of the same priority."""
        if not self.queue:
            return []
        first = min(map(self.priority, self.queue))
        return self._take_of([r for r in self.queue if self.priority(r) == first])

    def ready_at(self, now: int, /) -> int | None:
        """Return now, if there is anything."""
        return now if self.queue else None


@dataclass(slots=True, eq=False)
class _File:
    """The queued requests of a file and kind, swept by offset."""

    quantum: int
    left: int
    since: int
    queue: Batch = field(default_factory=list)
    position: int = 0
    taken: int = 0
    served: bool = False

    def take(self, limit: int) -> Batch:
        self.taken += 1
        if self.taken % BATCHES_OF_A_SWEEP == 0:
            return self.take_from(self.queue[0], limit)

        def place(request: Request) -> tuple[bool, int, int]:
            return (request.offset < self.position, request.offset, request.number)

        return self.take_from(min(self.queue, key=place), limit)

    def take_from(self, first: Request, limit: int) -> Batch:
        batch = _take_along(first, self.queue, limit, before=False)
        self.position = batch[-1].end + (_bytes(batch) == 0)
        return batch


class _Files:
    """What the schedulers by file share; files are in the order in which they became busy."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.files: dict[tuple[int, str], _File] = {}
        self.choices = 0

    def add(self, request: Request) -> None:
        """Take a request in."""
        quantum = self.settings.quantum
        file = self.files.setdefault(
            (request.file, request.kind), _File(quantum, quantum, self.choices)
        )
        file.queue.append(request)

    def ready_at(self, now: int, /) -> int | None:
        """Return now, if there is anything."""
        return now if self.files else None

    def _leave(self, key: tuple[int, str], *, to_the_end: bool) -> None:
        if not self.files[key].queue:
            del self.files[key]
        elif to_the_end:
            self.files[key] = self.files.pop(key)


class Hbrr(_Files):
    """A file gets its quantum, then the next one."""

    growth: ClassVar[int] = 1

    def take(self, _now: int, /) -> Batch:
        """Return the next of the file whose turn it is."""
        if not self.files:
            return []
        key, file = next(iter(self.files.items()))
        batch = file.take(min(self.settings.aggregation, file.left))
        file.left -= min(file.left, _bytes(batch))
        ends = file.left == 0 or _bytes(batch) == 0
        if ends:
            file.quantum = min(self.growth * file.quantum, self.settings.quantum << LEVELS)
            file.left = file.quantum
        self._leave(key, to_the_end=ends)
        return batch


class Mlf(Hbrr):
    """As hbrr, with twice the quantum each time that it did not suffice."""

    growth = 2


class Aioli(_Files):
    """The file whose waiting bytes are covered first by a quantum that doubles at each choice."""

    def _shift(self, file: _File) -> int:
        shift = 0
        while self.settings.quantum << shift < _bytes(file.queue):
            shift += 1
        return shift

    def take(self, _now: int, /) -> Batch:
        """Return the next of the file that is due, until it got what it was offered."""
        if not self.files:
            return []

        def due(key: tuple[int, str]) -> tuple[bool, int]:
            file = self.files[key]
            return (not file.served, file.since + self._shift(file))

        key = min(self.files, key=due)
        file = self.files[key]
        if not file.served:
            file.left = self.settings.quantum << self._shift(file)
            file.served = True
            self.choices += 1
        batch = file.take(min(self.settings.aggregation, file.left))
        file.left -= min(file.left, _bytes(batch))
        if file.left == 0 or _bytes(batch) == 0:
            file.served, file.since = False, self.choices
        self._leave(key, to_the_end=False)
        return batch


class Sjf(_Files):
    """The file with the fewest waiting bytes; first, what has waited too long."""

    def take(self, now: int, /) -> Batch:
        """Return the next of the shortest file, or of the oldest request if it is overdue."""
        if not self.files:
            return []
        waiting = [request for file in self.files.values() for request in file.queue]
        oldest = min(waiting, key=lambda request: request.number)
        if now - oldest.arrived >= LONGEST_WAIT:
            key = (oldest.file, oldest.kind)
            batch = self.files[key].take_from(oldest, self.settings.aggregation)
        else:
            key = min(self.files, key=lambda key: _bytes(self.files[key].queue))
            batch = self.files[key].take(self.settings.aggregation)
        self._leave(key, to_the_end=False)
        return batch


KINDS: dict[str, type[Scheduler]] = {
    "fifo": Fifo,
    "time-order": TimeOrder,
    "twins": Twins,
    "twins-busy": TwinsBusy,
    "twins-priority": TwinsPriority,
    "hbrr": Hbrr,
    "aioli": Aioli,
    "sjf": Sjf,
    "mlf": Mlf,
}
