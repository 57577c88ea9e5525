"""Independent pieces of work, handed to executors and kept as they finish."""

import signal
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, as_completed, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

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
) -> None:
    """Have all pieces done; `keep` gets each as it finishes and raises what is wrong with it.

    With `room`, a piece is only asked for while fewer are unfinished: what it takes may be large.
    What has not begun is cancelled when anything goes wrong. An interrupt waits a little for what
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
        _salvage(unfinished, keep)
        raise
    finally:
        for future in unfinished:
            future.cancel()


def _salvage(
    unfinished: dict["Future[Any]", Hashable], keep: Callable[[Hashable, "Future[Any]"], None]
) -> None:
    running = [future for future in unfinished if not future.cancel()]
    try:
        for future in as_completed(running, timeout=PATIENCE):
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
