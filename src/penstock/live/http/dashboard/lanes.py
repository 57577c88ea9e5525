"""Lanes: what each job did when, in bounded memory, with a revision number for every change.

A client that has seen revision r is sent what came after it. Whatever is dropped raises `dropped`,
so that a client that has not seen it is sent everything again.
"""

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from penstock.identities import FIRST_FILE_SYSTEM
from penstock.live.controller.job_table import JobEntry
from penstock.live.protocol.job_record import (
    ZeroBytes,
    direct_bytes,
    fail_opens,
    forwarded_bytes,
)
from penstock.model import JobId, ResourceId

Kind = Literal["io", "wait", "would-wait"]
Interval = tuple[JobId, Kind, float, float | None, float]
"""Job, kind, start, end (None: it goes on) and mean share; `stretches` in the API."""
PATTERNS = 50
RATE_SECONDS = 2.5
"""A job whose counters are older than this moves nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLimits:
    """How much is kept: intervals and phases that are over, and jobs that ended."""

    intervals: int = 60_000
    intervals_per_job: int = 5_000
    phases: int = 50_000
    phases_per_job: int = 500
    ended_jobs: int = 1_000
    removed_ids: int = 5_000
    """Ids of jobs that are no longer kept, for clients that still show them."""


class PhaseRecord(msgspec.Struct, kw_only=True):
    """A phase of a job; times are seconds since the epoch, None where not reached or unknown.

    Predicted is what the controller expected before the phase, the rest what the job measured.
    """

    began: float
    admitted: float | None = None
    ended: float | None = None
    waited_seconds: float = 0.0
    seconds: float | None = None
    bytes: int | None = None
    share: float = 0.0
    predicted_seconds: float | None = None
    predicted_bytes: float | None = None
    w_iter: float | None = None


@dataclass(slots=True, eq=False)
class Lane:
    """A job, what it does now, and what it did."""

    job: JobEntry
    since: float  # the start of its present interval
    revision: int
    kind: Kind | None = None  # None: it computes
    weight: float = 0.0
    resources: tuple[ResourceId, ...] = (FIRST_FILE_SYSTEM,)  # that it shares with that weight
    of: int = 1  # on how many its phase is: on the others it has what is left
    opened: float = 0.0  # the clock when the interval was opened
    mark: float = 0.0  # that of shares at that time
    share: float = 0.0  # at that time
    intervals: deque[tuple[int, float, bytes]] = field(default_factory=deque)
    """Revision, end, JSON."""
    phase: PhaseRecord | None = None
    shared: float = 0.0  # of the phase: share x seconds
    spent: float = 0.0  # of the phase: seconds
    phases: deque[PhaseRecord] = field(default_factory=deque)
    patterns: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=PATTERNS))
    rate: float = 0.0
    counted: float = 0.0
    moved: int = field(init=False)
    direct: int | None = field(init=False)
    notes: tuple[ZeroBytes | None, int] = (None, 0)  # why no bytes, calls that failed open

    def __post_init__(self) -> None:
        counters = self.job.counters
        self.moved = forwarded_bytes(counters) + direct_bytes(counters)
        # What a reconnecting job moved before is unknown until its first counters.
        self.direct = None if self.job.begin.resumes else direct_bytes(counters)

    def intervals_since(self, revision: int) -> list[bytes]:
        """Return the intervals that ended after a revision, as JSON, in order."""
        newer: list[bytes] = []
        for number, _, interval in reversed(self.intervals):
            if number <= revision:
                break
            newer.append(interval)
        return newer[::-1]

    def update_counters(self, now: float) -> bool:
        """Read the job's counters; return whether what is shown of them changed."""
        notes = (self.job.zero_bytes_reason, fail_opens(self.job.counters))
        noted, self.notes = self.notes != notes, notes
        moved = forwarded_bytes(self.job.counters) + direct_bytes(self.job.counters)
        before, old_rate = self.moved, self.rate
        elapsed = now - self.counted
        if self.counted and elapsed > 0:
            self.rate = max(moved - before, 0) / max(elapsed, 0.2)
        self.moved, self.counted = moved, now
        return noted or moved != before or self.rate != old_rate

    def take_direct_bytes(self) -> int:
        """Return the direct bytes since the last call."""
        before, self.direct = self.direct, direct_bytes(self.job.counters)
        return 0 if before is None else max(self.direct - before, 0)


class ShareClock:
    """The shares of all jobs over time, as one integral: a mean share is a difference of two marks.

    A share is a weight over the sum of all weights: it changes for all when one comes or goes.
    """

    def __init__(self) -> None:
        self.weights: dict[JobId, float] = {}
        self._total = 0.0
        self._mark = 0.0
        self._time = 0.0

    def set(self, now: float, job: JobId, weight: float) -> None:
        """Give a job a weight from now on; 0 removes it."""
        self.mark(now)
        before = self.weights.pop(job, 0.0)
        if weight > 0:
            self.weights[job] = weight
        # With no weights left, a rounding error of earlier differences must not remain.
        self._total = self._total - before + weight if self.weights else 0.0

    def mark(self, now: float) -> float:
        """Return the integral of 1 / (sum of all weights) up to now."""
        if self._total > 0 and now > self._time:
            self._mark += (now - self._time) / self._total
        self._time = max(now, self._time)
        return self._mark

    def share(self, weight: float) -> float:
        """Return the share of a weight now."""
        return min(weight / self._total, 1.0) if self._total > 0 else 0.0

    def settle(self, now: float) -> None:
        """Sum all weights again, to remove rounding errors."""
        self.mark(now)
        self._total = sum(self.weights.values())


class SiteShares:
    """The shares of all jobs of each resource; a job's own is the mean over its phase's resources.

    A job on no resource shares with nobody.
    """

    def __init__(self) -> None:
        self._clocks: defaultdict[ResourceId, ShareClock] = defaultdict(ShareClock)
        self._on: dict[JobId, tuple[ResourceId, ...]] = {}

    def set(
        self,
        now: float,
        job: JobId,
        weight: float,
        resources: tuple[ResourceId, ...] = (FIRST_FILE_SYSTEM,),
    ) -> None:
        """Give a job a weight on these resources from now on; 0 removes it."""
        for resource in self._on.pop(job, ()):
            if resource not in resources or not weight:
                self._clocks[resource].set(now, job, 0.0)
        if weight > 0:
            self._on[job] = resources
            for resource in resources:
                self._clocks[resource].set(now, job, weight)

    def mark(self, now: float, lane: Lane) -> float:
        """Return the integral of a lane's share up to now, over its weight."""
        if not lane.resources:
            return now / lane.weight if lane.weight else 0.0
        return sum(self._clocks[each].mark(now) for each in lane.resources) / lane.of

    def share(self, lane: Lane) -> float:
        """Return the share of a lane's weight now."""
        if not lane.resources:
            return 1.0
        return sum(self._clocks[each].share(lane.weight) for each in lane.resources) / lane.of

    def settle(self, now: float) -> None:
        """Sum all weights again, to remove rounding errors."""
        for clock in self._clocks.values():
            clock.settle(now)


class Lanes:
    """All lanes, by job id."""

    def __init__(self, known_since: float = 0.0, limits: LaneLimits | None = None) -> None:
        self.by_id: dict[JobId, Lane] = {}
        self.revision = 0
        self.dropped = 0
        """The last revision of which something was dropped."""
        self.known_since = known_since
        """The end of the last interval that a limit dropped, or the start of the history."""
        self.removed: deque[tuple[int, JobId]] = deque()
        self._limits = limits or LaneLimits()
        self._ended: deque[Lane] = deque()
        self._intervals: deque[Lane] = deque()  # one entry per interval
        self._phases: deque[Lane] = deque()

    def next(self) -> int:
        """Return the revision of a change."""
        self.revision += 1
        return self.revision

    def began(self, job: JobEntry, since: float) -> Lane:
        """Return the lane of a job; a reconnecting job has its lane again."""
        lane = self.by_id.get(job.id)
        if lane is None:
            lane = self.by_id[job.id] = Lane(job, since, self.next())
        else:
            lane.job, lane.since, lane.revision = job, since, self.next()
            self._ended = deque(other for other in self._ended if other is not lane)
        return lane

    def ended(self, lane: Lane) -> None:
        """Keep the lane of a job that ended, for a while."""
        lane.revision = self.next()
        self._ended.append(lane)
        if len(self._ended) > self._limits.ended_jobs:
            self._remove(self._ended.popleft())

    def add_interval(self, lane: Lane, interval: tuple[JobId, Kind, float, float, float]) -> None:
        """Keep an interval that is over."""
        lane.intervals.append((self.next(), interval[3], msgspec.json.encode(interval)))
        if len(lane.intervals) > self._limits.intervals_per_job:
            self._drop(lane, limited=True)
            return
        self._intervals.append(lane)
        if len(self._intervals) > self._limits.intervals:
            self._drop(self._intervals.popleft(), limited=True)

    def cut(self, lane: Lane, since: float, end: float) -> float:
        """Move the end of the transfer that ended at `since` back to `end`; return the new end.

        It does not end before it began. Clients are sent the shortened intervals again.
        """
        for k in reversed(range(len(lane.intervals))):
            id, kind, start, over, share = msgspec.json.decode(lane.intervals[k][2])
            if kind != "io" or over != since:  # another transfer
                break
            since = max(start, end)
            shortened = msgspec.json.encode((id, kind, start, since, share))
            lane.intervals[k] = (self.next(), since, shortened)
            if since > start:
                break
        return since

    def add_phase(self, lane: Lane, phase: PhaseRecord) -> None:
        """Keep a phase that is over."""
        lane.phases.append(phase)
        if len(lane.phases) > self._limits.phases_per_job:
            lane.phases.popleft()
            return
        self._phases.append(lane)
        if len(self._phases) > self._limits.phases:
            oldest = self._phases.popleft()
            if oldest.phases:  # a removed lane has none
                oldest.phases.popleft()

    def prune(self, before: float) -> None:
        """Drop the intervals and jobs that ended before a time."""
        while self._ended and (self._ended[0].job.ended or 0.0) < before:
            self._remove(self._ended.popleft())
        while self._intervals:
            intervals = self._intervals[0].intervals
            if intervals and intervals[0][1] >= before:
                break
            self._drop(self._intervals.popleft())

    def _drop(self, lane: Lane, *, limited: bool = False) -> None:
        if not lane.intervals:  # a removed lane has none
            return
        revision, end, _ = lane.intervals.popleft()
        self.dropped = max(self.dropped, revision)
        if limited:
            self.known_since = max(self.known_since, end)

    def _remove(self, lane: Lane) -> None:
        if self.by_id.get(lane.job.id) is lane:
            del self.by_id[lane.job.id]
        lane.intervals.clear()
        lane.phases.clear()
        self.removed.append((self.next(), lane.job.id))
        if len(self.removed) > self._limits.removed_ids:
            self.dropped = max(self.dropped, self.removed.popleft()[0])
