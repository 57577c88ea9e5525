"""Submit independent pieces of work to executors, and keep the results as they finish."""

import signal
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from penstock.campaign.executors.pool import WorkerDiedError

PATIENCE = 10.0
"""Seconds that an interrupted campaign waits for the pieces already running."""


@runtime_checkable
class Renewable(Protocol):
    """An executor that can start its workers again when one has died."""

    def renew(self) -> bool:
        """Start them; what was submitted before is then done or lost. False: not again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """A call for an executor; `key` identifies its result."""

    key: Hashable
    executor: Executor
    call: tuple[Any, ...]
    """The function and its arguments."""


def complete(
    pieces: Iterable[Piece],
    keep: Callable[[Hashable, "Future[Any]"], None],
    *,
    room: Callable[[], int] | None = None,
    patience: float = PATIENCE,
) -> None:
    """Run all pieces; `keep` gets each as it finishes and raises its error.

    With `room`, the next piece is made only while fewer than that are unfinished, since its
    arguments may be large. Pieces that were lost with a worker run again if their executor can be
    renewed. An error cancels the pieces that have not begun. An interrupt waits `patience` seconds
    for those that run, keeps them, and continues as KeyboardInterrupt.
    """
    unfinished = _Unfinished()
    try:
        for piece in pieces:
            unfinished.begin(piece)
            while room is not None and len(unfinished.pieces) >= max(1, room()):
                for future in wait(unfinished.pieces, return_when=FIRST_COMPLETED).done:
                    unfinished.end(future, keep)
        while unfinished.pieces:
            for future in as_completed(list(unfinished.pieces)):
                unfinished.end(future, keep)
    except KeyboardInterrupt:
        _salvage(unfinished.pieces, keep, patience)
        raise
    finally:
        for future in unfinished.pieces:
            future.cancel()


class _Unfinished:
    """The pieces that run; those whose worker died run again."""

    def __init__(self) -> None:
        self.pieces: dict[Future[Any], Piece] = {}

    def begin(self, piece: Piece) -> None:
        """Submit a piece to its executor."""
        # Workers start with the first submissions; one that starts while interrupts are blocked
        # never gets the terminal's Ctrl-C, not even before it runs Penstock's code.
        try:
            with _interrupts_blocked():
                self.pieces[piece.executor.submit(*piece.call)] = piece
        except BrokenProcessPool as error:
            # A worker has just died: treat it as this piece's.
            died: Future[Any] = Future()
            died.set_exception(error)
            self.pieces[died] = piece

    def end(self, future: "Future[Any]", keep: Callable[[Hashable, "Future[Any]"], None]) -> None:
        """Keep a piece that is done; submit it and others again that died with a worker."""
        if future not in self.pieces:
            return  # It was submitted again with another.
        piece = self.pieces[future]
        if not _lost(future) or not self._renew(piece.executor):
            keep(piece.key, future)
            del self.pieces[future]

    def _renew(self, executor: Executor) -> bool:
        if not isinstance(executor, Renewable) or not executor.renew():
            return False
        lost = {f: p for f, p in self.pieces.items() if p.executor is executor and _lost(f)}
        for future in lost:
            del self.pieces[future]
        for piece in lost.values():
            self.begin(piece)
        return True


def _lost(future: "Future[Any]") -> bool:
    if not future.done() or future.cancelled():
        return False
    return isinstance(future.exception(), BrokenProcessPool)


def result(future: "Future[Any]") -> Any:
    """Return the result of a piece; WorkerDiedError: its worker died."""
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise WorkerDiedError(
            "a worker process died, perhaps for want of memory (fewer --jobs need less)"
        ) from error


def _salvage(
    unfinished: dict["Future[Any]", Piece],
    keep: Callable[[Hashable, "Future[Any]"], None],
    patience: float,
) -> None:
    running = [future for future in unfinished if not future.cancel()]
    try:
        for future in as_completed(running, timeout=patience):
            if future.exception() is None:
                keep(unfinished[future].key, future)
    except TimeoutError:
        return


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
