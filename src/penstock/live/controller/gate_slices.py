"""Shares of jobs without I/O nodes, as time slices at their gates.

Stride scheduling (Waldspurger and Weihl, 1995): each slice goes to the job that has had least of
its share; a slice counts inversely to the job's weight. Like all gates, this is cooperative.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from penstock.model import JobId

SECONDS = 0.02
"""Length of a slice: long compared with a message's delay, short compared with a phase."""


class StrideScheduler:
    """Chooses which of several direct jobs transfers in the next slice."""

    def __init__(self) -> None:
        self._weights: dict[JobId, float] = {}
        self._passes: dict[JobId, float] = {}

    def share(self, weights: Mapping[JobId, float]) -> bool:
        """Set the jobs and their weights; tell whether slices are needed for their shares."""
        # A job that comes later has no claim on slices before it came.
        now = min((self._passes[job] for job in self._passes if job in weights), default=0.0)
        self._passes = {job: self._passes.get(job, now) for job in weights}
        self._weights = dict(weights)
        return len(set(weights.values())) > 1

    def next(self) -> JobId:
        """Return the job that has the next slice."""
        job = min(self._passes, key=lambda job: (self._passes[job], job))
        self._passes[job] += 1 / self._weights[job]
        return job


class GateSlicer:
    """Opens and closes gates slice by slice, while the weights of direct jobs differ."""

    def __init__(
        self, weights: Callable[[], Mapping[JobId, float]], gate: Callable[[JobId, bool], None]
    ) -> None:
        """`weights` returns those of direct jobs that transfer; `gate` opens or closes a gate."""
        self._current_weights, self._gate = weights, gate
        self._scheduler, self._holder = StrideScheduler(), ""
        self._closed: set[JobId] = set()
        self._changed, self._unused = asyncio.Event(), asyncio.Event()

    def changed(self) -> None:
        """A job began or stopped transferring."""
        self._changed.set()

    def opened(self, job: JobId) -> None:
        """A job's gate was opened because its turn has come."""
        self._closed.discard(job)

    def idle(self, job: JobId) -> None:
        """A job does not use its slice."""
        if job == self._holder:
            self._unused.set()

    async def run(self) -> None:
        """Keep the shares, until cancelled."""
        while True:
            self._changed.clear()
            weights = self._current_weights()
            self._closed &= weights.keys()
            if not self._scheduler.share(weights):
                self._give(list(weights))
                await self._changed.wait()
                continue
            self._unused.clear()
            self._holder = self._scheduler.next()
            self._give([self._holder], list(weights))
            with suppress(TimeoutError):
                async with asyncio.timeout(SECONDS):
                    await self._unused.wait()

    def _give(self, holders: list[JobId], others: Sequence[JobId] = ()) -> None:
        """Open the gates of the holders, and close those of the others."""
        for job in dict.fromkeys([*holders, *others]):
            opens = job in holders
            if opens == (job in self._closed):
                self._gate(job, opens)
                (self._closed.discard if opens else self._closed.add)(job)
