"""The history of a controller: told of jobs and turns as they happen, asked by the dashboard.

Whatever goes wrong here is logged and passed over: turns come first.
"""

import functools
import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from penstock.live.controller.job_table import JobEntry
from penstock.live.controller.turns import Expected
from penstock.live.http.dashboard.lanes import RATE_LASTS, Kind, Lane, Lanes, Phase, ShareClock
from penstock.live.protocol import messages
from penstock.model import JobId

if TYPE_CHECKING:
    from penstock.live.controller.controller import Controller

WINDOW = 900.0
"""Seconds that are kept."""
NOTABLE, NOTABLE_PART = 0.02, 0.1
"""A share that changes by more than both, of the whole and of itself, begins a new stretch."""
log = logging.getLogger("penstock.controller")
_P = ParamSpec("_P")


def _minor(
    method: Callable[Concatenate["History", _P], None],
) -> Callable[Concatenate["History", _P], None]:
    """Let no fault out: jobs do not depend on what people look at."""

    @functools.wraps(method)
    def guarded(self: "History", /, *args: _P.args, **more: _P.kwargs) -> None:
        try:
            method(self, *args, **more)
        except Exception:
            self.faults += 1
            if self.faults <= 10:  # the log is for other things, too
                log.exception("the history passed over %s", method.__name__)

    return guarded


class History:
    """Takes in what jobs do; `lanes` has it. It is the Watch of the controller's turns."""

    def __init__(self, controller: "Controller") -> None:
        self._governor = controller.governor
        self.turns = controller.governor.turns
        self.epoch = controller.governor.header.epoch
        """When the monotonic clock was 0, in seconds since 1970: fixed, so that times agree."""
        self.lanes = Lanes(known_since=self.now())
        self.shares = ShareClock()
        self.passed = 0
        """Bytes that went past the I/O nodes since this began."""
        self.faults = 0
        for job in controller.jobs.running.values():
            self.began(job)
        controller.history = self
        self.turns.watch = self
        for id in self.turns.standings:
            self.stands(id)

    def now(self) -> float:
        """Return the time in seconds since 1970, on a clock that does not jump."""
        return self.epoch + time.monotonic()

    @_minor
    def began(self, job: JobEntry) -> None:
        """A job began, or came back."""
        lane = self.lanes.began(job, self.now())
        id = self._governor.turn_id(job.id)
        if id is not None and id != job.id:  # its mates may be amid a phase
            self._stand(lane, id)

    @_minor
    def ended(self, job: JobEntry) -> None:
        """A job ended, or was lost."""
        lane = self.lanes.by_id.get(job.id)
        if lane is None:
            return
        self._close(lane, self.now())
        if lane.phase is not None:
            self._finish(lane, lane.phase, self.now())
        self.shares.set(time.monotonic(), job.id, 0.0)
        lane.rate = 0.0
        self.lanes.ended(lane)

    @_minor
    def changed(self, id: JobId) -> None:
        """A job has other I/O nodes."""
        if (lane := self.lanes.by_id.get(id)) is not None:
            lane.revision = self.lanes.next()

    @_minor
    def counted(self, job: JobEntry) -> None:
        """A job told its counters."""
        lane = self.lanes.by_id.get(job.id)
        if lane is None:
            return
        self.passed += lane.passes()
        if lane.counts(self.now()):
            lane.revision = self.lanes.next()
        if job.state != "running":
            lane.rate = 0.0

    @_minor
    def asked(self, job: JobId, expected: Expected) -> None:
        """A phase is about to begin."""
        known, phase = self.turns.manager.jobs[job], self.turns.standings[job].phase
        began = self.now() if phase is None else self.epoch + phase.began
        for lane in self._members(job):
            if lane.phase is not None and expected.resumes:
                continue
            lane.shared = lane.spent = 0.0
            if lane.phase is not None:  # it lent its turn, and nobody will tell its end
                self._finish(lane, lane.phase, lane.since)
            lane.phase = Phase(
                began=began,
                predicted_seconds=expected.seconds,
                predicted_bytes=expected.bytes,
                w_iter=known.w_iter,
            )

    @_minor
    def stands(self, job: JobId) -> None:
        """A phase waits, or transfers, from now on."""
        for lane in self._members(job):
            self._stand(lane, job)

    @_minor
    def over(self, job: JobId, time_: float, told: messages.PhaseEnded | None) -> None:
        """A phase was over at a time, or is cut."""
        ended = self.epoch + time_
        for lane in self._members(job):
            self._close(lane, ended)
            phase = lane.phase
            if phase is None or told is None:
                continue  # it may have lent its turn, and go on with it
            if told.small:
                lane.phase = None
                continue
            phase.seconds, phase.bytes = told.seconds, told.bytes
            phase.waited_seconds = told.waited or phase.waited_seconds
            self._finish(lane, phase, ended)
        self.shares.set(time.monotonic(), job, 0.0)

    def tick(self) -> None:
        """Take note of shares and rates that changed by what others did; drop what is too old."""
        monotonic, now = time.monotonic(), self.now()
        self.shares.settle(monotonic)
        for lane in self.lanes.by_id.values():
            if lane.kind == "io" and lane.weight > 0:
                share = self.shares.share(lane.weight)
                if abs(share - lane.share) > max(NOTABLE, NOTABLE_PART * lane.share):
                    self._open(lane, "io", now, lane.weight)
            if lane.rate and now - lane.counted > RATE_LASTS:
                lane.rate, lane.revision = 0.0, self.lanes.next()
        self.lanes.prune(now - WINDOW)

    def mean_share(self, lane: Lane, now: float) -> float:
        """Return the mean share of what a lane does, since it does it."""
        elapsed = now - self.epoch - lane.opened
        if elapsed <= 0 or not lane.weight:
            return lane.share
        marked = self.shares.mark(now - self.epoch) - lane.mark
        return min(lane.weight * marked / elapsed, 1.0)

    def _members(self, id: JobId) -> Iterator[Lane]:
        for member in self._governor.members(id):
            if (lane := self.lanes.by_id.get(member)) is not None:
                yield lane

    def _stand(self, lane: Lane, id: JobId) -> None:
        """Open the stretch that a phase is in."""
        phase = self.turns.standings[id].phase
        if phase is None:
            return
        if phase.admitted is not None:
            self.shares.set(time.monotonic(), id, phase.weight)
            if (lane.kind, lane.weight) != ("io", phase.weight):
                start = self.epoch + phase.admitted
                again = lane.kind == "io" and start <= lane.since  # another weight: from now on
                self._open(lane, "io", self.now() if again else start, phase.weight)
        elif phase.overdue:
            self._open(lane, "io", self.now(), 0.0)
        else:
            self.shares.set(time.monotonic(), id, 0.0)
            mode = self._governor.modes.of(self.turns.manager.jobs[id].user)
            kind: Kind = "wait" if mode == "enforce" else "would-wait"
            if lane.kind != kind:
                waits = lane.kind in {"wait", "would-wait"}  # it does, and its mode changed
                self._open(lane, kind, self.now() if waits else self.epoch + phase.since, 0.0)
        if lane.phase is not None:
            lane.phase.waited_seconds = phase.waited
            if phase.admitted is not None and lane.phase.admitted is None:
                lane.phase.admitted = self.epoch + phase.admitted

    def _open(self, lane: Lane, kind: Kind, start: float, weight: float) -> None:
        self._close(lane, start)
        lane.kind, lane.since, lane.weight = kind, start, weight
        lane.revision = self.lanes.next()
        lane.opened = time.monotonic()
        lane.mark = self.shares.mark(lane.opened)
        lane.share = self.shares.share(weight) if weight else 0.0

    def _close(self, lane: Lane, end: float) -> None:
        """End the stretch that a lane is in; from then on it computes."""
        kind, start = lane.kind, lane.since
        if kind is None:
            return
        share = self.mean_share(lane, self.now())
        if lane.phase is not None and kind == "io":
            spent = max(end - start, 0.0)
            lane.shared, lane.spent = lane.shared + share * spent, lane.spent + spent
            lane.phase.share = lane.shared / lane.spent if lane.spent else share
        over = round(max(end, start), 4)
        if end < start and kind == "io":  # a share changed after it was over, before that was told
            end = self.lanes.cut(lane, round(start, 4), round(end, 4))
        # It is kept even if nothing is left of it: who was told that it goes on must hear its end.
        self.lanes.add_stretch(lane, (lane.job.id, kind, round(start, 4), over, round(share, 4)))
        lane.kind, lane.since, lane.weight = None, end, 0.0
        lane.revision = self.lanes.next()

    def _finish(self, lane: Lane, phase: Phase, ended: float) -> None:
        phase.ended = max(ended, phase.began)
        self.lanes.add_phase(lane, phase)
        lane.phase = None
