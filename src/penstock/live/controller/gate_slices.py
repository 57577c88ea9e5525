"""Shares of jobs that go past the I/O nodes, as time at the gate.

Stride scheduling (Waldspurger and Weihl, 1995): every slice goes to the job that has had least of
its share; a job's slices count inversely to its weight. Cooperative, as all that gates do.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from penstock.model import JobId

SECONDS = 0.02
"""A slice: long against a turn's way, short against a phase."""


class StrideScheduler:
    """Who of several direct jobs transfers in the next slice."""

    def __init__(self) -> None:
        self._weights: dict[JobId, float] = {}
        self._passes: dict[JobId, float] = {}

    def share(self, weights: Mapping[JobId, float]) -> bool:
        """Take part: these jobs, by weight; say whether slices are needed to keep their shares."""
        # Who comes later has no claim on what went before.
        now = min((self._passes[job] for job in self._passes if job in weights), default=0.0)
        self._passes = {job: self._passes.get(job, now) for job in weights}
        self._weights = dict(weights)
        return len(set(weights.values())) > 1

    def next(self) -> JobId:
        """Give the next slice away."""
        job = min(self._passes, key=lambda job: (self._passes[job], job))
        self._passes[job] += 1 / self._weights[job]
        return job


class GateSlicer:
    """Opens and closes gates slice by slice, while weights of direct jobs differ."""

    def __init__(
        self, weights: Callable[[], Mapping[JobId, float]], gate: Callable[[JobId, bool], None]
    ) -> None:
        """`weights` are those of direct jobs that transfer now; `gate` opens or closes one's."""
        self._get, self._gate = weights, gate
        self._slices, self._holder = StrideScheduler(), ""
        self._closed: set[JobId] = set()
        self._changed, self._unwanted = asyncio.Event(), asyncio.Event()

    def changed(self) -> None:
        """Somebody began or ended to transfer."""
        self._changed.set()

    def opened(self, job: JobId) -> None:
        """A job's gate was opened by others: its turn has come."""
        self._closed.discard(job)

    def idle(self, job: JobId) -> None:
        """A job does not want its slice."""
        if job == self._holder:
            self._unwanted.set()

    async def keep(self) -> None:
        """Keep the shares, until cancelled."""
        while True:
            self._changed.clear()
            weights = self._get()
            self._closed &= weights.keys()
            if not self._slices.share(weights):
                self._give(list(weights))
                await self._changed.wait()
                continue
            self._unwanted.clear()
            self._holder = self._slices.next()
            self._give([self._holder], list(weights))
            with suppress(TimeoutError):
                async with asyncio.timeout(SECONDS):
                    await self._unwanted.wait()

    def _give(self, to: list[JobId], among: Sequence[JobId] = ()) -> None:
        for job in dict.fromkeys([*to, *among]):
            if (job in to) == (job in self._closed):
                self._gate(job, job in to)
                (self._closed.discard if job in to else self._closed.add)(job)
