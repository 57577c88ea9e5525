"""Connections that are no job's: few at a time for each user or address, and none stays silent.

A service of all users has one of these. Whoever has too many loses the oldest of its own, so that
nobody's idle connections keep out another, or its own next one.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

PER_PEER, IN_TOTAL = 64, 4096
"""Visitors at a time: of one user or address, and of all."""
SILENT_SECONDS = 60.0
"""Seconds after which one that says nothing is closed."""


class Visit:
    """One connection."""

    def __init__(self, close: Callable[[], object]) -> None:
        self.close = close


class Visitors:
    """The visitors of a service."""

    def __init__(
        self,
        *,
        per_peer: int = PER_PEER,
        in_total: int = IN_TOTAL,
        silent_seconds: float = SILENT_SECONDS,
        evicted: Callable[[Hashable], object] = lambda _: None,
    ) -> None:
        """Report the peer of each connection that had to go to `evicted`."""
        self._per_peer, self._in_total, self._evicted = per_peer, in_total, evicted
        self._silent_seconds = silent_seconds
        self._visits: dict[Hashable, list[Visit]] = {}
        self._total = 0

    def enter(self, peer: Hashable, close: Callable[[], object]) -> Visit:
        """Count a connection; `close` closes it if it has to go."""
        visit = Visit(close)
        self._visits.setdefault(peer, []).append(visit)
        self._total += 1
        if len(self._visits[peer]) > self._per_peer:
            self._evict(peer)
        elif self._total > self._in_total:
            self._evict(max(self._visits, key=lambda each: len(self._visits[each])))
        return visit

    def leave(self, peer: Hashable, visit: Visit) -> None:
        """Stop counting a connection; it may have gone before."""
        visits = self._visits.get(peer, [])
        if visit in visits:
            visits.remove(visit)
            self._total -= 1
            if not visits:
                del self._visits[peer]

    @contextmanager
    def visiting(self, peer: Hashable, close: Callable[[], object]) -> Iterator[Visit]:
        """Count a connection until the block ends."""
        visit = self.enter(peer, close)
        try:
            yield visit
        finally:
            self.leave(peer, visit)

    async def line(self, reader: asyncio.StreamReader) -> bytes:
        """Return the next line of a visitor; TimeoutError: it says nothing."""
        async with asyncio.timeout(self._silent_seconds):
            return await reader.readline()

    def _evict(self, peer: Hashable) -> None:
        oldest = self._visits[peer][0]
        self.leave(peer, oldest)
        oldest.close()
        self._evicted(peer)
