"""A job's phases, as its pages show them: what it marked, and what its calls tell."""

from collections.abc import Iterator

from penstock.learn.phases import Began, Ended, PhaseFinder
from penstock.live.agent.dead_callers import lives
from penstock.live.protocol.shared_page import SharedPages, SlotOwner

MARKS = 1024
"""Marks of phases that are taken in at one look: the counters are the job's, and not trusted."""


class Watch:
    """Looks at a job's pages; what a look finds is to be passed on at once."""

    def __init__(self, pages: SharedPages) -> None:
        self.finder = PhaseFinder()
        self._pages = pages
        self._said = (0, 0)
        self._markers: set[SlotOwner] = set()
        """Processes that were there when the phase under way was said: one of them did."""
        self._called = 0.0

    def calls(self) -> bool:
        """Say whether anybody is amid a data call, or waits for one at the gate."""
        return any(lives(thread) for thread, _ in self._pages.threads_in_call())

    def waits(self) -> bool:
        """Say whether anybody waits at the gate."""
        return any(waits and lives(thread) for thread, waits in self._pages.threads_in_call())

    def quiet(self, now: float) -> float:
        """Return for how long no process has called."""
        return 0.0 if self.calls() else now - min(self._called, now)

    def look(self, now: float) -> Iterator[Began | Ended | None]:
        """Yield what has begun and ended."""
        # Marks before counters: bytes that were counted after their phase ended would be another
        # phase, which nobody said.
        said = self._pages.phase_marks()
        last_call, moved = self._pages.last_call(), self._pages.moved_bytes()
        waits = self.waits()
        busy = waits or self.calls()
        self._called = max(self._called, min(last_call / 1e9, now))
        if said[0] != self._said[0]:
            self._markers |= set(filter(lives, self._pages.processes()))
            self._called = now
        yield from self._marked(now, said, moved)
        self._forget_the_dead()
        yield self.finder.sample(
            now,
            busy=busy,
            last_call=last_call / 1e9,
            moved=moved,
            waiting=waits,
        )

    def _forget_the_dead(self) -> None:
        """End marks that nobody is left to take back."""
        if not self.finder.marked:
            self._markers.clear()
        elif self._markers and not any(map(lives, self._markers)):
            self.finder.unmark()

    def _marked(
        self, now: float, said: tuple[int, int], moved: int
    ) -> Iterator[Began | Ended | None]:
        """Take in the phases that the job's processes said, in an order that can have been."""
        (had_begun, had_ended), self._said = self._said, said
        begun = min(max(self._said[0] - had_begun, 0), MARKS)
        ended = min(max(self._said[1] - had_ended, 0), MARKS)
        earlier = min(ended, max(had_begun - had_ended, 0))
        for _ in range(earlier):
            yield self.finder.ended(now, moved)
        for _ in range(begun):
            yield self.finder.began(now)
        for _ in range(ended - earlier):
            yield self.finder.ended(now, moved)
