"""A phase's wait for its turn, and the longest that it may last: the same simulated and live.

A phase that waits for too long is released: it transfers without a turn. The Manager is not told,
so the order of the others stays as it is; a released phase may be given its turn later, or lose it
again, and transfers either way. Its weight is that of the heaviest phase beside it, until it is
given its turn: docs/decisions/021-weight-after-max-wait.md.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

Key = TypeVar("Key")
PhaseWait = TypeVar("PhaseWait", bound="Wait")


@dataclass(slots=True, kw_only=True)
class Wait:
    """A phase in progress: since when it waits for its turn, or transfers."""

    began: float
    since: float  # when its present wait began
    admitted: float | None = None  # when; None: it has no turn
    waited: float = 0.0  # seconds until it was last admitted, or released
    weight: float = 1.0  # of its last turn or release; one before the first
    released: bool = False  # it transfers without a turn
    transfers_since: float | None = None  # None: it waits

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for its turn."""
        return self.transfers_since is None

    def waited_until(self, now: float) -> float:
        """Return how long it has waited, including its present wait."""
        return self.waited + (now - self.since if self.is_waiting else 0.0)

    def admit(self, now: float, weight: float) -> None:
        """End its wait, with a turn."""
        self.waited, self.admitted, self.weight = self.waited_until(now), now, weight
        self.transfers_since = now if self.transfers_since is None else self.transfers_since

    def release(self, now: float, weight: float) -> None:
        """End its wait, without a turn."""
        self.waited, self.released, self.weight = self.waited_until(now), True, weight
        self.transfers_since = now if self.transfers_since is None else self.transfers_since

    def hold(self, now: float) -> None:
        """Lose the turn, and wait again unless it needs none."""
        self.admitted, self.since = None, now
        if not self.released:
            self.transfers_since = None

    def is_overdue(self, now: float, longest: float) -> bool:
        """Tell whether it waits, and began longer ago than any may wait."""
        return self.is_waiting and now >= self.began + longest


def heaviest(waits: Iterable[Wait]) -> float:
    """Return the largest weight of the phases that transfer; one if none does."""
    return max((wait.weight for wait in waits if not wait.is_waiting), default=1.0)


def release_overdue(
    waits: Iterable[tuple[Key, PhaseWait]],
    now: float,
    longest: float,
    weight: Callable[[Key], float],
) -> Iterator[tuple[Key, PhaseWait]]:
    """Release and yield the phases that have waited for longer than any may.

    `weight` returns the `heaviest` on the same resource. A release does not change it.
    """
    for key, wait in waits:
        if wait.is_overdue(now, longest):
            wait.release(now, weight(key))
            yield key, wait
