"""Independent pieces of work, handed to executors and kept as they finish."""

import signal
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from penstock.studies.executors.place import WorkerDiedError

PATIENCE = 10.0
"""Seconds that an interrupted campaign waits for the pieces already running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Work that `submit` hands to an executor; `key` says whose result it is."""

    key: Hashable
    submit: Callable[[], "Future[Any]"]


def complete(
    pieces: Iterable[Piece],
    keep: Callable[[Hashable, "Future[Any]"], None],
    *,
    room: Callable[[], int] | None = None,
    patience: float = PATIENCE,
) -> None:
    """Have all pieces done; `keep` gets each as it finishes and raises what is wrong with it.

    With `room`, a piece is only asked for while fewer are unfinished: what it takes may be large.
    What has not begun is cancelled when anything goes wrong. An interrupt waits `patience` for what
    has, keeps it, and goes on as KeyboardInterrupt.
    """
    unfinished: dict[Future[Any], Hashable] = {}

    def done(futures: Iterable["Future[Any]"]) -> None:
        for future in futures:
            keep(unfinished[future], future)
            del unfinished[future]

    try:
        for piece in pieces:
            # Workers start with the first submissions; one that starts while interrupts are blocked
            # never sees the terminal's Ctrl-C, not even before it runs any line of ours.
            with _interrupts_blocked():
                unfinished[piece.submit()] = piece.key
            while room is not None and len(unfinished) >= max(1, room()):
                done(wait(unfinished, return_when=FIRST_COMPLETED).done)
        done(as_completed(list(unfinished)))
    except KeyboardInterrupt:
        _salvage(unfinished, keep, patience)
        raise
    finally:
        for future in unfinished:
            future.cancel()


def result(future: "Future[Any]") -> Any:
    """Return what a piece gave; WorkerDiedError: whoever did it is gone."""
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise WorkerDiedError(
            "a worker process died, perhaps for want of memory (fewer --jobs need less)"
        ) from error


def _salvage(
    unfinished: dict["Future[Any]", Hashable],
    keep: Callable[[Hashable, "Future[Any]"], None],
    patience: float,
) -> None:
    running = [future for future in unfinished if not future.cancel()]
    try:
        for future in as_completed(running, timeout=patience):
            if future.exception() is None:
                keep(unfinished[future], future)
    except TimeoutError:
        return


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
