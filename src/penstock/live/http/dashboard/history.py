"""The history of a controller: follows its jobs and turns as they change, for the dashboard.

An exception here is logged and goes no further: turns come first.
"""

import functools
import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from penstock.live.controller.job_table import JobEntry, JobObserver
from penstock.live.controller.turn_state import Phase, PhaseEstimate, PhaseObserver, PhaseReport
from penstock.live.http.dashboard.lanes import (
    RATE_SECONDS,
    Kind,
    Lane,
    Lanes,
    PhaseRecord,
    SiteShares,
)
from penstock.model import JobId

if TYPE_CHECKING:
    from penstock.live.controller.controller import Controller

WINDOW = 900.0
"""Seconds that are kept."""
SHARE_CHANGE, RELATIVE_SHARE_CHANGE = 0.02, 0.1
"""A share that changes by more than both, absolutely and relatively, begins a new interval."""
LOGGED_FAULTS = 10
log = logging.getLogger("penstock.controller")
_P = ParamSpec("_P")


def _isolated(
    method: Callable[Concatenate["History", _P], None],
) -> Callable[Concatenate["History", _P], None]:
    """Log exceptions instead of raising them: jobs do not depend on the dashboard."""

    @functools.wraps(method)
    def guarded(self: "History", /, *args: _P.args, **options: _P.kwargs) -> None:
        try:
            method(self, *args, **options)
        except Exception:
            self.faults += 1
            if self.faults <= LOGGED_FAULTS:
                log.exception("the dashboard's history failed in %s", method.__name__)

    return guarded


class History(JobObserver, PhaseObserver):
    """Turns what jobs do into `lanes`. It observes the controller's jobs and turns."""

    def __init__(
        self, controller: "Controller", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.clock = clock
        self._turn_service = controller.turn_service
        self.turns = controller.turn_service.turns
        self.epoch = controller.turn_service.header.epoch
        """The time when the clock was 0, in seconds since 1970; fixed, so that times agree."""
        self.lanes = Lanes(known_since=self.now())
        self.shares = SiteShares()
        self.direct_bytes = 0
        """Bytes that jobs moved directly since the history began."""
        self.faults = 0
        for job in controller.jobs.running.values():
            self.began(job)
        controller.history = self
        self.turns.observer = self
        for id in self.turns.states:
            self.phase_changed(id)

    def now(self) -> float:
        """Return the time in seconds since 1970, on a clock that does not jump."""
        return self.epoch + self.clock()

    @_isolated
    def began(self, job: JobEntry) -> None:
        """A job began, or reconnected."""
        lane = self.lanes.began(job, self.now())
        id = self._turn_service.turn_id(job.id)
        if id is not None and id != job.id:  # its other hosts may be in a phase
            self._follow(lane, id)

    @_isolated
    def ended(self, job: JobEntry) -> None:
        """A job ended, or was lost."""
        lane = self.lanes.by_id.get(job.id)
        if lane is None:
            return
        self._close(lane, self.now())
        if lane.phase is not None:
            self._finish(lane, lane.phase, self.now())
        self.shares.set(self.clock(), job.id, 0.0)
        lane.rate = 0.0
        self.lanes.ended(lane)

    @_isolated
    def changed(self, id: JobId) -> None:
        """A job has other I/O nodes."""
        if (lane := self.lanes.by_id.get(id)) is not None:
            lane.revision = self.lanes.next()

    @_isolated
    def counted(self, job: JobEntry) -> None:
        """A job sent its counters."""
        lane = self.lanes.by_id.get(job.id)
        if lane is None:
            return
        self.direct_bytes += lane.take_direct_bytes()
        if lane.update_counters(self.now()):
            lane.revision = self.lanes.next()
        if job.state != "running":
            lane.rate = 0.0

    @_isolated
    def phase_expected(self, job: JobId, estimate: PhaseEstimate) -> None:
        """A phase is about to begin."""
        w_iter = self.turns.manager.jobs[job].w_iter
        phase = self.turns.states[job].phase
        began = self.now() if phase is None else self.epoch + phase.began
        for lane in self._members(job):
            if lane.phase is not None and estimate.resumes:
                continue
            lane.shared = lane.spent = 0.0
            if lane.phase is not None:  # it yielded its turn, and its end will not be reported
                self._finish(lane, lane.phase, lane.since)
            lane.phase = PhaseRecord(
                began=began,
                predicted_seconds=estimate.seconds,
                predicted_bytes=estimate.bytes,
                w_iter=w_iter,
            )

    @_isolated
    def phase_changed(self, job: JobId) -> None:
        """A phase waits, or transfers, from now on."""
        for lane in self._members(job):
            self._follow(lane, job)

    @_isolated
    def phase_ended(self, job: JobId, time_: float, report: PhaseReport | None) -> None:
        """A phase ended at a time, or was interrupted (no report)."""
        ended = self.epoch + time_
        for lane in self._members(job):
            self._close(lane, ended)
            phase = lane.phase
            if phase is None or report is None:
                continue  # it may have yielded its turn, and resume
            if report.small:
                lane.phase = None
                continue
            phase.seconds, phase.bytes = report.seconds, report.bytes
            phase.waited_seconds = report.waited or phase.waited_seconds
            self._finish(lane, phase, ended)
        self.shares.set(self.clock(), job, 0.0)

    def tick(self) -> None:
        """Note shares and rates that changed because of other jobs; drop what is too old."""
        now = self.now()
        self.shares.settle(self.clock())
        for lane in self.lanes.by_id.values():
            if lane.kind == "io" and lane.weight > 0:
                share = self.shares.share(lane)
                if abs(share - lane.share) > max(SHARE_CHANGE, RELATIVE_SHARE_CHANGE * lane.share):
                    self.open(lane, "io", now, lane.weight)
            if lane.rate and now - lane.counted > RATE_SECONDS:
                lane.rate, lane.revision = 0.0, self.lanes.next()
        self.lanes.prune(now - WINDOW)

    def mean_share(self, lane: Lane, now: float) -> float:
        """Return the mean share of a lane's present interval."""
        elapsed = now - self.epoch - lane.opened
        if elapsed <= 0 or not lane.weight:
            return lane.share
        marked = self.shares.mark(now - self.epoch, lane) - lane.mark
        return min(lane.weight * marked / elapsed, 1.0)

    def open(
        self, lane: Lane, kind: Kind, start: float, weight: float, phase: Phase | None = None
    ) -> None:
        """Begin an interval, which ends the one before it; `phase`: the one that transfers."""
        self._close(lane, start)
        lane.kind, lane.since, lane.weight = kind, start, weight
        if phase is not None:
            lane.resources, lane.of = phase.shared_resources(), len(phase.resources)
        lane.revision = self.lanes.next()
        lane.opened = self.clock()
        lane.mark = self.shares.mark(lane.opened, lane)
        lane.share = self.shares.share(lane) if weight else 0.0

    def _members(self, id: JobId) -> Iterator[Lane]:
        for member in self._turn_service.members(id):
            if (lane := self.lanes.by_id.get(member)) is not None:
                yield lane

    def _follow(self, lane: Lane, id: JobId) -> None:
        """Open the interval that a phase is in."""
        phase = self.turns.states[id].phase
        if phase is None:
            return
        if not phase.is_waiting:
            resources = phase.shared_resources()
            self.shares.set(self.clock(), id, phase.weight, resources)
            if (lane.kind, lane.weight, lane.resources) != ("io", phase.weight, resources):
                start = self.now() if phase.admitted is None else self.epoch + phase.admitted
                changed = lane.kind == "io" and start <= lane.since  # but not its turn
                self.open(lane, "io", self.now() if changed else start, phase.weight, phase)
        else:
            self.shares.set(self.clock(), id, 0.0)
            mode = self._turn_service.modes.of(self.turns.manager.jobs[id].user)
            kind: Kind = "wait" if mode == "enforce" else "would-wait"
            if lane.kind != kind:
                waits = lane.kind in {"wait", "would-wait"}  # only its mode changed
                self.open(lane, kind, self.now() if waits else self.epoch + phase.since, 0.0)
        if lane.phase is not None:
            lane.phase.waited_seconds = phase.waited
            if phase.admitted is not None and lane.phase.admitted is None:
                lane.phase.admitted = self.epoch + phase.admitted

    def _close(self, lane: Lane, end: float) -> None:
        """End a lane's present interval; from then on the job computes."""
        kind, start = lane.kind, lane.since
        if kind is None:
            return
        share = self.mean_share(lane, self.now())
        if lane.phase is not None and kind == "io":
            spent = max(end - start, 0.0)
            lane.shared, lane.spent = lane.shared + share * spent, lane.spent + spent
            lane.phase.share = lane.shared / lane.spent if lane.spent else share
        over = round(max(end, start), 4)
        if end < start and kind == "io":  # a share changed between the end and its report
            end = self.lanes.cut(lane, round(start, 4), round(end, 4))
        # Kept even if it is empty: a client that saw it open must receive its end.
        self.lanes.add_interval(lane, (lane.job.id, kind, round(start, 4), over, round(share, 4)))
        lane.kind, lane.since, lane.weight = None, end, 0.0
        lane.revision = self.lanes.next()

    def _finish(self, lane: Lane, phase: PhaseRecord, ended: float) -> None:
        phase.ended = max(ended, phase.began)
        self.lanes.add_phase(lane, phase)
        lane.phase = None
