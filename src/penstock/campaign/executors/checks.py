"""Which of a Dask scheduler's workers may take part: each is asked, and none is waited for long.

A worker may be listed and yet be stopped, swapped out or stuck in a call. Its question stays open
while others work; as soon as it answers, it takes part as well.
"""

import asyncio
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any

from penstock.campaign.executors import worker_check

ANSWER = 20.0
"""Seconds after which a worker that has not answered is left out, and told of."""
AT_ONCE = 0.5
"""Seconds in which most answer."""


@dataclass(slots=True, kw_only=True)
class Checks:
    """What is known of the workers, by address; `fit` ones have answered as they should."""

    name: str
    tell: Callable[[str], None]
    fit: set[str] = field(default_factory=set)
    silent: set[str] = field(default_factory=set)
    _asked: dict[str, "Future[str]"] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)

    def look(self, client: Any, workers: Collection[str]) -> None:
        """Ask those that are new, hear those that answered; UnfitWorkerError: one differs."""
        self._drop(workers)
        new = sorted(set(workers) - self.fit - self._asked.keys())
        for worker in new:
            self._since.setdefault(worker, time.monotonic())
            question = _ask(client, worker)
            self._asked[worker] = asyncio.run_coroutine_threadsafe(
                question, client.loop.asyncio_loop
            )
        wait([self._asked[worker] for worker in new], timeout=AT_ONCE)
        self._hear()
        for worker, since in self._since.items():
            if worker not in self.silent and time.monotonic() - since > ANSWER:
                self.silent.add(worker)
                self.tell(f"worker {worker} does not answer; the others work without it")

    @property
    def undecided(self) -> bool:
        """Whether some were asked so lately that they may answer yet."""
        return not self._since.keys() <= self.silent

    def close(self) -> None:
        """Wait for no answer any more."""
        for question in self._asked.values():
            question.cancel()

    def _hear(self) -> None:
        for worker, question in list(self._asked.items()):
            if not question.done():
                continue
            del self._asked[worker]
            try:
                differs = question.result()
            except OSError:
                continue  # It has gone, or is asked again.
            if differs:
                raise worker_check.UnfitWorkerError(
                    f"{self.name}: worker {worker} has {differs}; {worker_check.ADVICE}"
                )
            self.fit.add(worker)
            self.silent.discard(worker)
            del self._since[worker]

    def _drop(self, workers: Collection[str]) -> None:
        """Forget the workers that are gone."""
        gone = (self.fit | self._since.keys()).difference(workers)
        self.fit -= gone
        self.silent -= gone
        for worker in gone:
            self._since.pop(worker, None)
            if worker in self._asked:
                self._asked.pop(worker).cancel()


async def _ask(client: Any, worker: str) -> str:
    """Return in what a worker differs, in words; OSError: it has gone."""
    ours = worker_check.fitness()
    # Without Penstock at first, which it may not have.
    message = {"op": "versions", "packages": ["penstock", *worker_check.NUMBERS]}
    told = await client.scheduler.broadcast(msg=message, workers=[worker], on_error="ignore")
    if not isinstance(told.get(worker), dict):
        raise OSError(f"{worker} has gone")
    versions = told[worker]
    theirs = {
        "Python": ".".join(versions["host"]["python"].split(".")[:2]),
        "Penstock": versions["packages"]["penstock"] or worker_check.ABSENT,
        **{key: versions["packages"][key] or worker_check.ABSENT for key in worker_check.NUMBERS},
    }
    differs = worker_check.unfit(theirs, {key: ours[key] for key in theirs})
    if differs:
        return differs
    answer = (await client._run(worker_check.fitness, workers=[worker], on_error="return")).get(
        worker
    )
    if answer is None or isinstance(answer, OSError):
        raise OSError(f"{worker} has gone")
    if not isinstance(answer, dict):
        return f"an installation that fails ({answer!r})"
    return worker_check.unfit(answer, ours)
