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
from concurrent.futures import Future, wait
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
        "Penstock": penstock.__version__,
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
    _open: dict[str, "Future[str]"] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)

    def update(self, client: Any, workers: Collection[str]) -> None:
        """Check new workers and read the answers; UnfitWorkerError: one differs."""
        self._drop(workers)
        new = sorted(set(workers) - self.fit - self._open.keys())
        for worker in new:
            self._since.setdefault(worker, time.monotonic())
            self._open[worker] = asyncio.run_coroutine_threadsafe(
                _check(client, worker), client.loop.asyncio_loop
            )
        wait([self._open[worker] for worker in new], timeout=AT_ONCE)
        self._read()
        for worker, since in self._since.items():
            if worker not in self.silent and time.monotonic() - since > self.patience:
                self.silent.add(worker)
                self.tell(f"worker {worker} does not answer; the others work without it")

    @property
    def undecided(self) -> bool:
        """Whether some workers may still answer in time."""
        return not self._since.keys() <= self.silent

    def close(self) -> None:
        """Cancel the checks that are still open."""
        for answer in self._open.values():
            answer.cancel()

    def _read(self) -> None:
        for worker, answer in list(self._open.items()):
            if not answer.done():
                continue
            del self._open[worker]
            try:
                differs = answer.result()
            except OSError:
                continue  # It left, or the next update checks it again.
            if differs:
                raise UnfitWorkerError(f"{self.name}: worker {worker} has {differs}; {ADVICE}")
            self.fit.add(worker)
            self.silent.discard(worker)
            del self._since[worker]

    def _drop(self, workers: Collection[str]) -> None:
        """Forget the workers that left."""
        left = (self.fit | self._since.keys()).difference(workers)
        self.fit -= left
        self.silent -= left
        for worker in left:
            self._since.pop(worker, None)
            if worker in self._open:
                self._open.pop(worker).cancel()


async def _check(client: Any, worker: str) -> str:
    """Return how a worker differs, in words; OSError: it left."""
    ours = environment()
    # First without Penstock's own code, which the worker may not have.
    message = {"op": "versions", "packages": ["penstock", *NUMBERS]}
    answers = await client.scheduler.broadcast(msg=message, workers=[worker], on_error="ignore")
    if not isinstance(answers.get(worker), dict):
        raise OSError(f"{worker} left")
    versions = answers[worker]
    packages = {name: versions["packages"][name] or ABSENT for name in ("penstock", *NUMBERS)}
    first = {
        "Python": ".".join(versions["host"]["python"].split(".")[:2]),
        "Penstock": packages.pop("penstock"),
        **packages,
    }
    differs = differences(first, {key: ours[key] for key in first})
    if differs:
        return differs
    answer = (await client._run(environment, workers=[worker], on_error="return")).get(worker)
    if answer is None or isinstance(answer, OSError):
        raise OSError(f"{worker} left")
    if not isinstance(answer, dict):
        return f"an installation that fails ({answer!r})"
    return differences(answer, ours)
