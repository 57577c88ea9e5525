"""Lanes: what each job did when, in bounded memory, with a number for whatever changed.

Every change gets the next revision; who has seen revision r is told what came after it. What is
dropped leaves a mark, so that who has not seen it in time can be told to begin anew.
"""

from collections import deque
from typing import Any, Literal

import msgspec

from penstock.live.controller.job_table import JobEntry
from penstock.live.protocol.counters import direct_bytes, forwarded_bytes
from penstock.model import JobId

Kind = Literal["io", "wait", "would-wait"]
STRETCHES, LANE_STRETCHES = 60_000, 5_000
"""Stretches that are over and kept, of all jobs and of one."""
PHASES, LANE_PHASES = 50_000, 500
"""Phases that are over and kept, of all jobs and of one."""
ENDED = 1_000
"""Jobs that ended and are kept."""
GONE = 5_000
"""Names of jobs that are kept no longer, for those who still show them."""
PATTERNS = 50
RATE_LASTS = 2.5
"""Seconds after which a job that has not counted moves nothing."""


class Phase(msgspec.Struct, kw_only=True):
    """A phase of a job, all times since the epoch; None: it has not come to that, or nobody knows.

    Predicted is what the controller expected before it began, observed what the job measured.
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


class Lane:
    """A job, what it does now, and what it did."""

    __slots__ = (
        "counted",
        "direct",
        "job",
        "kind",
        "mark",
        "moved",
        "opened",
        "patterns",
        "phase",
        "phases",
        "rate",
        "revision",
        "share",
        "shared",
        "since",
        "spent",
        "stretches",
        "weight",
    )

    def __init__(self, job: JobEntry, since: float, revision: int) -> None:
        self.job = job
        self.revision = revision
        self.kind: Kind | None = None  # None: it computes
        self.since = since  # when it began to do what it does
        self.weight = 0.0
        self.opened, self.mark = 0.0, 0.0  # when that was heard, and the clock of shares then
        self.share = 0.0  # then
        self.stretches: deque[tuple[int, float, bytes]] = deque()  # revision, end, as it is told
        self.phase: Phase | None = None
        self.shared, self.spent = 0.0, 0.0  # of the phase: seconds of the whole, and at all
        self.phases: deque[Phase] = deque()
        self.patterns: deque[tuple[float, str]] = deque(maxlen=PATTERNS)
        self.rate = 0.0
        self.moved = forwarded_bytes(job.counters) + direct_bytes(job.counters)
        self.counted = 0.0
        # What one that comes back did before is unknown until it counts: that is not of now.
        self.direct = None if job.begin.resumes else direct_bytes(job.counters)

    def stretches_since(self, revision: int) -> list[bytes]:
        """Return the stretches that were over after a revision, as they are told, in order."""
        newer: list[bytes] = []
        for number, _, told in reversed(self.stretches):
            if number <= revision:
                break
            newer.append(told)
        return newer[::-1]

    def counts(self, now: float) -> bool:
        """Take in new counters; say whether the rate or what was moved is another."""
        moved = forwarded_bytes(self.job.counters) + direct_bytes(self.job.counters)
        before, had = self.moved, self.rate
        elapsed = now - self.counted
        if self.counted and elapsed > 0:
            self.rate = max(moved - before, 0) / max(elapsed, 0.2)
        self.moved, self.counted = moved, now
        return moved != before or self.rate != had

    def passes(self) -> int:
        """Return the bytes that went past the I/O nodes since the job last counted."""
        before, self.direct = self.direct, direct_bytes(self.job.counters)
        return 0 if before is None else max(self.direct - before, 0)


class ShareClock:
    """Who has which part of the file system, as an integral: a mean share costs no more than two.

    A share is a weight over the sum of all, and changes for all whenever one comes or goes.
    """

    def __init__(self) -> None:
        self.weights: dict[JobId, float] = {}
        self._total = 0.0
        self._mark = 0.0
        self._time = 0.0

    def set(self, now: float, job: JobId, weight: float) -> None:
        """Give a job a weight from now on; 0: none."""
        self.mark(now)
        had = self.weights.pop(job, 0.0)
        if weight > 0:
            self.weights[job] = weight
        # Adding up differences for days would leave an error; nobody's weight is nothing.
        self._total = self._total - had + weight if self.weights else 0.0

    def mark(self, now: float) -> float:
        """Return the integral of one over all weights up to now."""
        if self._total > 0 and now > self._time:
            self._mark += (now - self._time) / self._total
        self._time = max(now, self._time)
        return self._mark

    def share(self, weight: float) -> float:
        """Return the share of a weight now."""
        return min(weight / self._total, 1.0) if self._total > 0 else 0.0

    def settle(self, now: float) -> None:
        """Add all weights up anew."""
        self.mark(now)
        self._total = sum(self.weights.values())


class Lanes:
    """All lanes, by the jobs' ids."""

    def __init__(self, known_since: float = 0.0) -> None:
        self.by_id: dict[JobId, Lane] = {}
        self.revision = 0
        self.dropped = 0
        """The last revision that is not kept."""
        self.known_since = known_since
        """The end of the last stretch that a bound dropped, or when all began."""
        self.gone: deque[tuple[int, JobId]] = deque()
        self._ended: deque[Lane] = deque()
        self._stretches: deque[Lane] = deque()  # a lane as often as it has stretches
        self._phases: deque[Lane] = deque()

    def next(self) -> int:
        """Return the revision of a change."""
        self.revision += 1
        return self.revision

    def began(self, job: JobEntry, since: float) -> Lane:
        """Return the lane of a job, which may come back to it."""
        lane = self.by_id.get(job.id)
        if lane is None:
            lane = self.by_id[job.id] = Lane(job, since, self.next())
        else:
            lane.job, lane.since, lane.revision = job, since, self.next()
            self._ended = deque(other for other in self._ended if other is not lane)
        return lane

    def ended(self, lane: Lane) -> None:
        """Keep a job that ended, for a while."""
        lane.revision = self.next()
        self._ended.append(lane)
        if len(self._ended) > ENDED:
            self._forget(self._ended.popleft())

    def add_stretch(self, lane: Lane, told: tuple[Any, ...]) -> None:
        """Keep a stretch that is over: job, kind, start, end and share."""
        lane.stretches.append((self.next(), told[3], msgspec.json.encode(told)))
        if len(lane.stretches) > LANE_STRETCHES:
            self._drop(lane, bounded=True)
            return
        self._stretches.append(lane)
        if len(self._stretches) > STRETCHES:
            self._drop(self._stretches.popleft(), bounded=True)

    def cut(self, lane: Lane, since: float, end: float) -> float:
        """Let the transfer that went on at a time end before; return when: not before it began.

        What was told of it is told again.
        """
        for k in reversed(range(len(lane.stretches))):
            id, kind, start, over, share = msgspec.json.decode(lane.stretches[k][2])
            if kind != "io" or over != since:  # that was another
                break
            since = max(start, end)
            told = msgspec.json.encode((id, kind, start, since, share))
            lane.stretches[k] = (self.next(), since, told)
            if since > start:
                break
        return since

    def add_phase(self, lane: Lane, phase: Phase) -> None:
        """Keep a phase that is over."""
        lane.phases.append(phase)
        if len(lane.phases) > LANE_PHASES:
            lane.phases.popleft()
            return
        self._phases.append(lane)
        if len(self._phases) > PHASES:
            oldest = self._phases.popleft()
            if oldest.phases:  # it may be one that is gone
                oldest.phases.popleft()

    def prune(self, before: float) -> None:
        """Drop what was over before a time, and the jobs that were."""
        while self._ended and (self._ended[0].job.ended or 0.0) < before:
            self._forget(self._ended.popleft())
        while self._stretches:
            kept = self._stretches[0].stretches
            if kept and kept[0][1] >= before:
                break
            self._drop(self._stretches.popleft())

    def _drop(self, lane: Lane, *, bounded: bool = False) -> None:
        if not lane.stretches:  # it may be one that is gone
            return
        revision, end, _ = lane.stretches.popleft()
        self.dropped = max(self.dropped, revision)
        if bounded:
            self.known_since = max(self.known_since, end)

    def _forget(self, lane: Lane) -> None:
        if self.by_id.get(lane.job.id) is lane:
            del self.by_id[lane.job.id]
        lane.stretches.clear()
        lane.phases.clear()
        self.gone.append((self.next(), lane.job.id))
        if len(self.gone) > GONE:
            self.dropped = max(self.dropped, self.gone.popleft()[0])
