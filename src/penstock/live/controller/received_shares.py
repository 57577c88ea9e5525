"""The share that each job received: its part of the bytes that all jobs moved recently.

A policy grants a share; what a job then gets also depends on what it and the others ask for. Jobs
report their bytes once per second; the bytes between two reports count as spread evenly.
"""

from collections import defaultdict
from collections.abc import Iterable
from math import ceil, floor

from penstock.live.protocol.messages import COUNTER_INTERVAL
from penstock.model import JobId

INTERVAL = 5.0
"""Seconds over which a share is measured, at most."""
BIN = 0.25
"""Seconds: the resolution."""
_KEPT = floor((INTERVAL + 3 * COUNTER_INTERVAL) / BIN)
_Bins = dict[int, float]  # bytes by number of the bin


class ReceivedShares:
    """The recent bytes of all jobs; times are those of one clock."""

    def __init__(self) -> None:
        self._reported: dict[JobId, tuple[float, int]] = {}
        self._moved: defaultdict[JobId, _Bins] = defaultdict(dict)
        self._all: _Bins = {}

    def began(self, job: JobId, now: float, moved: int) -> None:
        """A job begins, or reconnects, with these bytes."""
        self._reported[job] = (now, moved)

    def counted(self, job: JobId, now: float, moved: int) -> None:
        """A job reports the bytes that it has moved so far."""
        before, earlier = self._reported.get(job, (now, moved))
        self._reported[job] = (now, moved)
        oldest = floor(now / BIN) - _KEPT
        if now <= before or moved <= earlier:
            return
        rate = (moved - earlier) / (now - before)
        for k in range(max(floor(before / BIN), oldest), floor(now / BIN) + 1):
            part = rate * (min(now, (k + 1) * BIN) - max(before, k * BIN))
            for bins in (self._moved[job], self._all):
                bins[k] = bins.get(k, 0.0) + max(part, 0.0)
        for bins in (self._moved[job], self._all):
            for k in [k for k in bins if k < oldest]:
                del bins[k]

    def ended(self, job: JobId) -> None:
        """A job is gone; its bytes still count among those of all jobs."""
        self._reported.pop(job, None)
        self._moved.pop(job, None)

    def received(self, jobs: Iterable[JobId], now: float, since: float) -> float | None:
        """Return the share of a job, given its members, that transfers since a time.

        None: there was no report about that time yet, or no job moved anything.
        """
        end = floor((now - COUNTER_INTERVAL) / BIN)  # until then every job has reported
        bins = range(max(ceil(since / BIN), end - floor(INTERVAL / BIN)), end)
        total = sum(self._all.get(k, 0.0) for k in bins)
        if total <= 0:
            return None
        own = [self._moved[job] for job in jobs if job in self._moved]
        return min(sum(each.get(k, 0.0) for each in own for k in bins) / total, 1.0)
