"""What a place to work at offers, and how work there fails."""

from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Any, Protocol


class ExecutorError(RuntimeError):
    """Who was to do the work cannot: a failed run, which may be tried again."""


class WorkerDiedError(ExecutorError):
    """A worker process ended without an answer."""


class Place(AbstractContextManager["Place"], Protocol):
    """Somewhere to work; what it started is gone when its context ends."""

    name: str
    """For people."""
    away: bool
    """Whether the work is done by other machines, perhaps with other files."""

    def executor(self, *, light: bool = False) -> Executor:
        """Return who works; `light` work needs no process of its own."""
        ...

    def share(self, value: Any) -> Any:
        """Return what to submit in a value's stead where many pieces of work have it."""
        ...

    def room(self) -> int:
        """Return how many pieces of work are done at a time, at most."""
        ...
