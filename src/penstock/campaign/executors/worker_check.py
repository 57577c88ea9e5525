"""Check workers before they work: the same Penstock, the same Python, the same numbers.

Results must not depend on the worker. A worker with another version of Penstock, or of the packages
it computes with, is refused before it works; so is one that joins later, with its first piece.

A worker may be listed and yet be stopped, swapped out or stuck in a call. Its check stays open
while others work; as soon as it answers, it takes part as well.
"""

import asyncio
import hashlib
import os
import platform
import sys
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import penstock
from penstock.campaign.executors.pool import ExecutorError

Environment = Mapping[str, str]
NUMBERS = ("numpy", "scipy", "scikit-learn")
DATA = "PENSTOCK_DATA"
"""Names the measured data of some studies, where there is any."""
ABSENT = "none"
ADVICE = "start the workers again, from the environment that runs penstock"
AT_ONCE = 0.5
"""Seconds in which most workers answer."""


class UnfitWorkerError(ExecutorError):
    """The results of a worker would differ from those of this process."""


@cache
def environment() -> Environment:
    """Return what must agree between this process and the workers."""
    return {
        "Python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "machine": platform.machine(),
        "Penstock": _version("penstock"),
        "source": _source(),
        DATA: os.environ.get(DATA) or ABSENT,
        **{name: _version(name) for name in NUMBERS},
    }


def differences(worker: Environment, ours: Environment) -> str:
    """Return how a worker differs, in words; "" if it does not."""
    return ", ".join(
        f"{key} {worker.get(key, ABSENT)} instead of {value}"
        for key, value in ours.items()
        if worker.get(key, ABSENT) != value
    )


def run_if_same(ours: Environment, work: Callable[..., Any], *args: Any) -> Any:
    """Run a piece of work, unless this process differs from the one that submitted it."""
    differs = differences(environment(), ours)
    if differs:
        raise UnfitWorkerError(f"a worker on {platform.node()} has {differs}; {ADVICE}")
    return work(*args)


def _source() -> str:
    """Return a digest of Penstock's Python files: the version stays the same during development."""
    root = Path(penstock.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ABSENT


@dataclass(slots=True, kw_only=True)
class WorkerChecks:
    """The state of each worker of a Dask scheduler, by address; `fit` ones may work."""

    name: str
    tell: Callable[[str], None]
    patience: float
    """Seconds after which a worker without an answer counts as silent."""
    fit: set[str] = field(default_factory=set)
    silent: set[str] = field(default_factory=set)
    _open: dict[str, tuple[float, "Future[dict[str, Any]]"]] = field(default_factory=dict)
    """The workers that have not answered: since when, and the answer to come."""

    def update(self, client: Any, workers: Collection[str]) -> None:
        """Check new workers and read the answers; UnfitWorkerError: one differs."""
        self._forget((self.fit | self._open.keys()).difference(workers))
        new = set(workers) - self.fit - self._open.keys()
        for worker in new:
            self._open[worker] = (time.monotonic(), _ask(client, worker))
        wait([self._open[worker][1] for worker in new], timeout=AT_ONCE)
        for worker, (since, answer) in list(self._open.items()):
            if answer.done() and self._accept(worker, answer):
                continue
            if answer.done():
                self._open[worker] = (since, _ask(client, worker))
            if worker not in self.silent and time.monotonic() - since > self.patience:
                self.silent.add(worker)
                self.tell(f"worker {worker} does not answer; the others work without it")

    @property
    def undecided(self) -> bool:
        """Whether some workers may still answer in time."""
        return not self._open.keys() <= self.silent

    def close(self) -> None:
        """Cancel the checks that are still open."""
        self._forget(set(self._open))

    def _accept(self, worker: str, answer: "Future[dict[str, Any]]") -> bool:
        """Let a worker take part that is the same; False: it gave no answer."""
        try:
            reported = answer.result().get(worker)
        except (OSError, CancelledError):
            return False
        if reported is None or isinstance(reported, OSError):
            return False
        if "No module named 'penstock'" in str(reported):
            reported = {**environment(), "Penstock": ABSENT}
        differs = (
            differences(reported, environment())
            if isinstance(reported, dict)
            else f"an installation that fails ({reported!r})"
        )
        if differs:
            raise UnfitWorkerError(f"{self.name}: worker {worker} has {differs}; {ADVICE}")
        self.fit.add(worker)
        self._forget_check(worker)
        return True

    def _forget(self, workers: Collection[str]) -> None:
        self.fit.difference_update(workers)
        for worker in workers:
            self._forget_check(worker)

    def _forget_check(self, worker: str) -> None:
        self.silent.discard(worker)
        if worker in self._open:
            self._open.pop(worker)[1].cancel()


def _ask(client: Any, worker: str) -> "Future[dict[str, Any]]":
    """Ask a worker for its environment, without waiting: a stopped one never answers."""
    answer = client._run(environment, workers=[worker], on_error="return")
    return asyncio.run_coroutine_threadsafe(answer, client.loop.asyncio_loop)
