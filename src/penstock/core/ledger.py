"""What a live controller knows of its jobs, from events and actions alone.

A replay of the same events has the same knowledge, so it makes the same decisions. Until a phase
has ended, its length is estimated as announced, else as the mean of the job's earlier phases, else
as the mean of all phases so far; its progress is the time since its turn began, up to that length.
Time spent waiting for a turn is neither computing nor I/O. A job's work is its hint `phases` times
its hint `period`, else its volume and compute time.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.core.manager import Manager
from penstock.errors import InputError
from penstock.model import (
    DIRECT_PATH,
    Action,
    Admit,
    Event,
    Hold,
    Job,
    JobEnded,
    JobId,
    JobStarted,
    PhaseBegan,
    PhaseEnded,
    Request,
    ResourceId,
    Site,
)
from penstock.model.load import isolated_time

KNOWN = frozenset({"w_iter", "remaining", "progress", "io", "work"})
"""What a live controller can know, if only as an estimate, or only for jobs that announce it."""
UNKNOWN: Mapping[str, str] = {"profile": "which class a generator drew a job from"}


def knows(needs: frozenset[str]) -> None:
    """Raise InputError unless a live controller can know what a policy needs."""
    for need in sorted(needs - KNOWN):
        raise InputError(
            f"a live controller cannot know {UNKNOWN.get(need, repr(need))} ({need!r}), which the "
            f"policy needs; choose one that needs nothing but {', '.join(sorted(KNOWN))}, see "
            "'penstock policies'"
        )


@dataclass(slots=True)
class _Part:
    """A phase on one resource: its progress, and whether it transfers now."""

    done: float = 0.0
    since: float | None = None
    share: float = 1.0

    def passed(self, now: float) -> float:
        """Return its isolated seconds so far, if it was alone during its turns."""
        return self.done + (0.0 if self.since is None else (now - self.since) * self.share)

    def stop(self, now: float) -> None:
        self.done, self.since = self.passed(now), None


@dataclass(slots=True)
class _PhaseProgress:
    """A phase in progress: its open parts, its expected length, and its length so far."""

    parts: dict[ResourceId, _Part]
    expected: float | None
    io: float = 0.0

    def passed(self, now: float) -> float:
        """Return its progress on the slowest resource."""
        passed = min(part.passed(now) for part in self.parts.values())
        return passed if self.expected is None else min(passed, self.expected)


@dataclass(slots=True)
class _Account:
    """A job's totals, in seconds; `idle_since`: the end of its last phase."""

    started: float
    idle_since: float
    compute: float = 0.0
    io: float = 0.0
    phases: int = 0  # with I/O: others were too small, interrupted, or yielded their turn
    phase: _PhaseProgress | None = None


class Ledger:
    """The View of a live controller: sees every event before the Manager, and its actions after.

    `jobs` are the Manager's, with its latest estimates; see `attend`. Time never goes backwards: an
    event with an earlier time than the last one counts as if it came now.
    """

    def __init__(self, *, site: Site, jobs: Mapping[JobId, Job] | None = None) -> None:
        self.site = site
        self.jobs: Mapping[JobId, Job] = {} if jobs is None else jobs
        self.now = 0.0
        self._accounts: dict[JobId, _Account] = {}
        self._all_io = 0.0
        self._all_phases = 0

    def attend(self, manager: Manager) -> None:
        """Use the Manager's jobs from now on; the Manager has this ledger as its view."""
        self.jobs = manager.jobs

    def take(self, event: Event) -> Event:
        """Account for an event; return it as the Manager is to handle it."""
        if self.now < event.time < math.inf:
            self.now = event.time
        event = self._sane(event)
        match event:
            case JobStarted():
                self._accounts[event.job.id] = _Account(self.now, self.now)
            case JobEnded():
                self._accounts.pop(event.job, None)
            case PhaseBegan() if event.job in self._accounts:
                self._begin(self._accounts[event.job], event)
            case PhaseEnded() if event.job in self._accounts:
                self._end(self._accounts[event.job], event)
        return event

    def did(self, actions: Iterable[Action]) -> None:
        """Account for what the Manager decided on the event."""
        for action in actions:
            if not isinstance(action, Admit | Hold) or action.job not in self._accounts:
                continue
            phase = self._accounts[action.job].phase
            if phase is None or action.resource not in phase.parts:
                continue
            part = phase.parts[action.resource]
            part.stop(self.now)
            if isinstance(action, Admit):
                part.since, part.share = self.now, action.max_share

    def expected_io(self, job: JobId) -> float | None:
        """Return the mean length of the job's phases so far, or None before the first has ended."""
        account = self._accounts.get(job)
        return account.io / account.phases if account is not None and account.phases else None

    def age(self, job: Job) -> float:
        """Seconds since the job started."""
        account = self._accounts.get(job.id)
        return 0.0 if account is None else self.now - account.started

    def progress(self, job: Job) -> float:
        """The gaps between the job's phases, and its I/O."""
        account = self._accounts.get(job.id)
        if account is None:
            return 0.0
        gap = self.now - account.idle_since if account.phase is None else 0.0
        return account.compute + gap + self.io_done(job)

    def io_done(self, job: Job) -> float:
        """The isolated seconds of the phases that ended, and of the one under way so far."""
        account = self._accounts.get(job.id)
        if account is None:
            return 0.0
        return account.io + (0.0 if account.phase is None else account.phase.passed(self.now))

    def work_left(self, job: Job) -> float:
        """What is left of the work that the job announced; NaN if it announced none."""
        phases, period = (job.hints.get(name) for name in ("phases", "period"))
        if isinstance(phases, int | float) and isinstance(period, int | float):
            return self._iterations_left(job.id, phases, period)
        try:
            return max(0.0, isolated_time(job, self.site) - self.progress(job))
        except InputError:
            return math.nan

    def _iterations_left(self, job: JobId, phases: float, period: float) -> float:
        """Return the time of the phases to come, and the rest of this one."""
        account = self._accounts.get(job)
        done = 0 if account is None else account.phases
        left = max(phases - done, 0) * period
        if account is None:
            return left
        if account.phase is None:
            return max(left - min(self.now - account.idle_since, period), 0.0)
        return max(left - period, 0.0) + self._left(account.phase)

    def remaining(self, request: Request) -> float:
        """The request's expected length less what is done of it; zero once it is overdue."""
        account = self._accounts.get(request.job.id)
        phase = None if account is None else account.phase
        if phase is None:
            return 0.0
        return self._left(phase)

    def _left(self, phase: _PhaseProgress) -> float:
        expected = phase.expected
        if expected is None:
            expected = self._all_io / self._all_phases if self._all_phases else 0.0
        return max(0.0, expected - phase.passed(self.now))

    def _sane(self, event: Event) -> Event:
        """Return the event with the present time, and without invalid lengths of agents."""
        if event.time != self.now:
            event = replace(event, time=self.now)
        match event:
            case PhaseBegan(io=float(io)) if not 0 <= io < math.inf:
                return replace(event, io=None)
            case PhaseEnded(io=io, idle=idle):
                if not 0 <= io < math.inf:
                    event = replace(event, io=0.0)
                if not 0 <= idle < math.inf:
                    event = replace(event, idle=0.0)
        return event

    def _begin(self, account: _Account, event: PhaseBegan) -> None:
        if account.phase is None:
            account.compute += self.now - account.idle_since
        expected = self.expected_io(event.job) if event.io is None else event.io
        account.phase = _PhaseProgress({r: _Part() for r in event.resources}, expected)
        if not event.resources:
            # Without I/O nodes it needs no turn.
            account.phase.parts[DIRECT_PATH] = _Part(since=self.now)

    def _end(self, account: _Account, event: PhaseEnded) -> None:
        phase = account.phase
        if phase is None:
            return
        phase.io = max(phase.io, event.io)
        phase.parts.pop(event.resource, None)
        if phase.parts:
            return
        account.io += phase.io
        account.phases += phase.io > 0
        account.idle_since, account.phase = max(self.now - event.idle, account.started), None
        self._all_io += phase.io
        self._all_phases += phase.io > 0


def decide(manager: Manager, ledger: Ledger, event: Event) -> tuple[Event, list[Action]]:
    """Handle an event: return it with its effective time, and what the Manager decided."""
    event = ledger.take(event)
    actions = manager.handle(event)
    ledger.did(actions)
    return event, actions
