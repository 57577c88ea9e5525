"""What a pool of workers offers, how it fails, and how long it waits."""

from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol


class ExecutorError(RuntimeError):
    """The workers cannot do the work: the run failed and may be tried again."""


class WorkerDiedError(ExecutorError):
    """A worker process ended without an answer."""


class LostPieceError(ExecutorError):
    """A piece of work was lost with a worker or a scheduler, not by its own fault."""


class CampaignExecutor(Executor):
    """An executor that supervises its workers while the caller waits for results."""

    def room(self) -> int:
        """Return how many pieces of work to submit at a time, at most."""
        raise NotImplementedError

    def watch(self) -> None:
        """Look after the workers; called again and again while pieces are unfinished."""

    def renew(self) -> bool:
        """Prepare to take lost pieces again; False: not again."""
        return True


class WorkerPool(AbstractContextManager["WorkerPool"], Protocol):
    """Workers of this machine or of others; what the pool started ends with its context."""

    name: str
    """For messages."""
    remote: bool
    """Whether other machines do the work, perhaps with other files."""

    def executor(self, *, light: bool = False) -> Executor:
        """Return the executor; `light` work needs no process of its own."""
        ...

    def share(self, value: Any) -> Any:
        """Return what to submit in place of a value that many pieces of work have."""
        ...

    def room(self) -> int:
        """Return how many pieces of work run at a time, at most."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long remote workers, their scheduler and Slurm may take, in seconds."""

    connect: float = 10.0
    """Time limit for a scheduler to answer, at the start and after a lost connection."""
    answer: float = 20.0
    """Time limit for a connected scheduler to answer."""
    worker_answer: float = 20.0
    """Time limit for a worker to answer; beyond it the worker is left out, with a message."""
    quiet: float = 5.0
    """Time without a worker after which a message is printed."""
    close: float = 10.0
    """Time limit for the connection to close."""
    command: float = 30.0
    """Time limit for one of Slurm's commands, and for its jobs to end."""
    poll_idle: float = 3.0
    """Time between two queries to Slurm while there is no worker."""
    poll_busy: float = 30.0
    """Time between two queries to Slurm while there are workers."""
    resubmissions: int = 3
    """How often to submit jobs again that ended before any work was done (a count)."""


LIMITS = Limits()
