"""Submit independent pieces of work to executors, and keep the results as they finish."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from penstock.campaign.executors.pool import (
    CampaignExecutor,
    ExecutorError,
    LostPieceError,
    WorkerDiedError,
)

PATIENCE = 10.0
"""Seconds that an interrupted campaign waits for the pieces already running."""
BEAT = 0.5
"""Seconds between two looks at the workers."""
TRIES = 4
"""How often a piece that is lost with its worker is submitted at most."""
ROOM = 1000
"""Unfinished pieces of an executor that names no limit."""
SPARE = 8
"""Pieces that wait behind those that run, so that no worker is ever idle."""


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

    The next piece is made only while fewer than `room` (by default a few more than the executor's)
    are unfinished, since its arguments may be large. Pieces that were lost with a worker run again
    if their executor can be renewed. An error cancels the pieces that have not begun. An interrupt
    waits `patience` seconds for those that run, keeps them, and continues as KeyboardInterrupt.
    """
    unfinished = _Unfinished(keep=keep)
    try:
        for piece in pieces:
            unfinished.begin(piece)
            while len(unfinished.pieces) >= max(1, room() if room else _room(piece.executor)):
                unfinished.collect()
        while unfinished.pieces:
            unfinished.collect()
    except KeyboardInterrupt:
        unfinished.salvage(patience)
        raise
    finally:
        for future in unfinished.pieces:
            future.cancel()


@dataclass(slots=True, kw_only=True)
class _Unfinished:
    """The pieces that run; those whose worker died run again."""

    keep: Callable[[Hashable, "Future[Any]"], None]
    pieces: dict["Future[Any]", Piece] = field(default_factory=dict)
    tries: Counter[Piece] = field(default_factory=Counter)

    def begin(self, piece: Piece) -> None:
        """Submit a piece to its executor."""
        self.tries[piece] += 1
        try:
            future = piece.executor.submit(*piece.call)
        except (BrokenProcessPool, ExecutorError) as error:
            # A worker has just died, or all are gone: treat it as this piece's failure.
            future = Future()
            future.set_exception(error)
        self.pieces[future] = piece

    def collect(self) -> None:
        """Wait a little for pieces; keep those that are done."""
        for executor in {piece.executor for piece in self.pieces.values()}:
            if isinstance(executor, CampaignExecutor):
                executor.watch()
        done = wait(self.pieces, timeout=BEAT, return_when=FIRST_COMPLETED).done
        # Results first: keeping a failure raises its error, and ends the campaign.
        for future in sorted(done, key=_failed):
            piece = self.pieces.get(future)
            if piece is not None and not self._run_again(piece, future):
                self.keep(piece.key, future)
                del self.pieces[future]

    def _run_again(self, piece: Piece, future: "Future[Any]") -> bool:
        """Submit a piece again that was lost with a worker, and the others that were."""
        executor = piece.executor
        if not _lost(future) or not isinstance(executor, CampaignExecutor):
            return False
        if self.tries[piece] == TRIES or not executor.renew():
            return False
        lost = {f: p for f, p in self.pieces.items() if p.executor is executor and _lost(f)}
        for one in lost:
            del self.pieces[one]
        for again in lost.values():
            self.begin(again)
        return True

    def salvage(self, patience: float) -> None:
        """Keep what finishes soon; cancel what has not begun."""
        running = [future for future in self.pieces if not future.cancel()]
        with suppress(TimeoutError):
            for future in as_completed(running, timeout=patience):
                if future.exception() is None:
                    self.keep(self.pieces[future].key, future)


def _room(executor: Executor) -> int:
    return executor.room() + SPARE if isinstance(executor, CampaignExecutor) else ROOM


def _failed(future: "Future[Any]") -> bool:
    return future.cancelled() or future.exception() is not None


def _lost(future: "Future[Any]") -> bool:
    if not future.done() or future.cancelled():
        return False
    return isinstance(future.exception(), BrokenProcessPool | LostPieceError)


def result(future: "Future[Any]") -> Any:
    """Return the result of a piece; WorkerDiedError: its worker died."""
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise WorkerDiedError(
            "a worker process died, perhaps for want of memory (fewer --jobs need less)"
        ) from error
