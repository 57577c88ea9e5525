"""What a live controller knows of its jobs, from events and actions alone.

A replay of the same events has the same knowledge, so it makes the same decisions. Until a phase
has ended, its length is expected to be as announced, else the mean of the job's earlier phases,
else it is not known. What it has done is estimated by the share of the resource that it was
granted, and replaced by what was measured once it has ended. Time spent waiting for a turn is
neither computing nor I/O. A job's work is its hint `phases` times its hint `period`, else its
volume and compute time, if these are of the whole run.
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


@dataclass(slots=True, eq=False)
class _Part:
    """A phase on one resource: what is done of it, and at which rate it goes on."""

    done: float = 0.0  # isolated seconds
    since: float = 0.0
    rate: float = 0.0  # isolated seconds per second: one if the job is alone
    weight: float = 1.0
    max_share: float = 1.0

    def passed(self, now: float) -> float:
        return self.done + (now - self.since) * self.rate

    def go_on(self, now: float, rate: float) -> None:
        """Change the rate."""
        self.done, self.since, self.rate = self.passed(now), now, rate


def _divide(parts: Iterable[_Part], capacity: float) -> Iterable[tuple[_Part, float]]:
    """Yield the share of each part: by weight, none above its cap, nothing left unused."""
    by_cap = sorted(parts, key=lambda part: part.max_share / part.weight)
    weights = [part.weight for part in by_cap]
    for first, part in enumerate(by_cap):
        share = min(part.max_share, capacity * part.weight / math.fsum(weights[first:]))
        capacity -= share
        yield part, share


@dataclass(slots=True)
class _PhaseProgress:
    """A phase in progress: its open parts, its expected length, and its length so far."""

    parts: dict[ResourceId, _Part]
    expected: float | None
    io: float = 0.0

    def passed(self, now: float) -> float:
        """Return its progress on the slowest resource."""
        return min(part.passed(now) for part in self.parts.values())


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
        self._transferring: dict[ResourceId, dict[JobId, _Part]] = {}

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
                account = self._accounts.pop(event.job, None)
                if account is not None and account.phase is not None:
                    for resource in account.phase.parts:
                        self._leave(event.job, resource)
            case PhaseBegan() if event.job in self._accounts:
                self._begin(self._accounts[event.job], event)
            case PhaseEnded() if event.job in self._accounts:
                self._end(self._accounts[event.job], event)
        return event

    def did(self, actions: Iterable[Action]) -> None:
        """Account for what the Manager decided on the event."""
        changed: dict[ResourceId, None] = {}
        for action in actions:
            if not isinstance(action, Admit | Hold) or action.job not in self._accounts:
                continue
            phase = self._accounts[action.job].phase
            if phase is None or action.resource not in phase.parts:
                continue
            part = phase.parts[action.resource]
            transferring = self._transferring.setdefault(action.resource, {})
            if isinstance(action, Admit):
                part.weight, part.max_share = action.weight, action.max_share
                transferring[action.job] = part
            elif transferring.pop(action.job, None) is not None:
                part.go_on(self.now, 0.0)
            changed[action.resource] = None
        for resource in changed:
            self._divide(resource)

    def _leave(self, job: JobId, resource: ResourceId) -> None:
        if self._transferring.get(resource, {}).pop(job, None) is not None:
            self._divide(resource)

    def _divide(self, resource: ResourceId) -> None:
        """Divide a resource among the jobs that transfer on it now."""
        parts = self._transferring[resource].values()
        if not parts:
            return
        capacity = self.site.capacity[min(len(parts), len(self.site.capacity)) - 1]
        for part, share in _divide(parts, capacity):
            part.go_on(self.now, share / part.max_share)

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
        if job.per_phase:
            return math.nan
        try:
            return isolated_time(job, self.site) - self.progress(job)
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
        expected = account.phase.expected
        rest = 0.0 if expected is None else expected - account.phase.passed(self.now)
        return max(left - period, 0.0) + max(rest, 0.0)

    def expected(self, request: Request) -> float | None:
        """The announced length of the phase, or the mean of the job's earlier ones."""
        phase = self._phase(request)
        return None if phase is None else phase.expected

    def done(self, request: Request) -> float:
        """What the phase has done, if it got the share that it was granted."""
        phase = self._phase(request)
        return 0.0 if phase is None else phase.passed(self.now)

    def remaining(self, request: Request) -> float:
        """What is expected less what is done: negative once the phase is overdue."""
        expected = self.expected(request)
        return (math.inf if expected is None else expected) - self.done(request)

    def _phase(self, request: Request) -> _PhaseProgress | None:
        account = self._accounts.get(request.job.id)
        return None if account is None else account.phase

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
            # Without I/O nodes it needs no turn, and nobody is in its way.
            account.phase.parts[DIRECT_PATH] = _Part(since=self.now, rate=1.0)

    def _end(self, account: _Account, event: PhaseEnded) -> None:
        phase = account.phase
        if phase is None:
            return
        phase.io = max(phase.io, event.io)
        phase.parts.pop(event.resource, None)
        self._leave(event.job, event.resource)
        if phase.parts:
            return
        account.io += phase.io
        account.phases += phase.io > 0
        account.idle_since, account.phase = max(self.now - event.idle, account.started), None


def decide(manager: Manager, ledger: Ledger, event: Event) -> tuple[Event, list[Action]]:
    """Handle an event: return it with its effective time, and what the Manager decided."""
    event = ledger.take(event)
    actions = manager.handle(event)
    ledger.did(actions)
    return event, actions
