"""The runner of surveys: many short measurements on a private deployment, each kept at once.

`explore`, `patterns measure` and `tuner measure` are surveys. Every result goes to a journal as
soon as it is there, so that an interrupted survey continues where it stopped.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from penstock.campaign.journal import CellId, Entry, Journal, Value
from penstock.live.measure.scratch import interruptible, private_state

T = TypeVar("T")


def _no_progress(done: int, total: int) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey(Generic[T]):
    """The cells to measure, and how to measure one of them."""

    header: Mapping[str, Value]
    """What all cells have in common; a journal with another header is refused."""
    cells: Sequence[T]
    cell_id: Callable[[T], CellId]
    session: Callable[[Path], AbstractContextManager[Callable[[T], Entry]]]
    """Starts a deployment, given its state directory; gives a function that measures a cell."""
    next_round: Callable[[Journal], Sequence[T]] | None = None
    """Returns further cells once all earlier ones are measured."""

    def run(
        self,
        journal: Journal,
        *,
        progress: Callable[[int, int], object] = _no_progress,
        budget: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Measure the cells that the journal lacks, then further rounds; start none after `budget`.

        `progress` receives how many cells are measured, and of how many. A signal raises
        InterruptedRun, and leaves nothing but the journal behind.
        """
        with interruptible():
            pending: Sequence[T] = self._missing(journal)
            done = len(self.cells) - len(pending)
            progress(done, len(self.cells))
            pending = pending or self._further(journal)
            if not pending:
                return
            deadline = clock() + budget
            with private_state() as state, self.session(state) as measure:
                while pending:
                    total = done + len(pending)
                    for cell in pending:
                        if clock() >= deadline:
                            return
                        journal.add(measure(cell))
                        done += 1
                        progress(done, total)
                    pending = self._further(journal)

    def measured(self, journal: Journal) -> int:
        """Return how many cells the journal has, those of further rounds included."""
        if self.next_round is not None:
            return len(journal.entries)
        return len(self.cells) - len(self._missing(journal))

    def rows(self, journal: Journal) -> Iterable[dict[str, Value]]:
        """Return the rows of all cells, in the order of their ids."""
        ids = sorted(map(self.cell_id, self.cells))
        return (row for one in ids for row in journal.entries[one].rows)

    def _missing(self, journal: Journal) -> list[T]:
        return [cell for cell in self.cells if self.cell_id(cell) not in journal.entries]

    def _further(self, journal: Journal) -> Sequence[T]:
        return () if self.next_round is None else self.next_round(journal)
