"""Detects the begin and end of a job's I/O phases in samples of its counters.

A phase begins with the first data call after a gap and ends once the job has been idle for a gap;
its end is dated back to its last call. The length of a gap is learned for each job: pauses inside
phases and compute times are two clusters of idle times, and the gap is in the widest stretch
between them on a logarithmic scale. docs/live/phases.md has the rule and its limits.

There is no clock here: the caller passes the time. Counters are written by the job and are not
trusted: values that run backwards, lie ahead of the clock or are not numbers are ignored.
"""

import math
from dataclasses import dataclass

SMALL = 2**20
SHORTEST_GAP, LONGEST_GAP = 0.05, 5.0
"""Idle seconds after which a phase is over: what is learned lies between these."""
MEASURABLE = 2 * SHORTEST_GAP
"""Seconds of the shortest phase whose bytes per second are a measure: samples date its beginning to
within half of that."""
TRICKLE = 16
"""A burst below `small` / TRICKLE (a line of a log) does not keep a phase from ending."""
FORGOTTEN = 60.0
"""Idle seconds after which a phase that the job marked is over, although it was not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """A phase began."""

    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A phase of `moved` bytes ended; a `small` one does not count as a phase."""

    time: float
    moved: int
    small: bool = False


class Gap:
    """How long a job must be idle for its phase to be over: `seconds`, learned from its pauses.

    Pauses are counted in half-octaves, and fade with time. A stretch without pauses is the better a
    border the wider it is and the more of the job's idle time lies above it; a single pause above
    it is taken for an accident and makes no border.
    """

    memory = 30.0
    """Idle time after which a pause has faded, in units of the longest."""
    most = 8.0
    """The gap is at most this many times the pauses below it: other jobs wait for it."""

    def __init__(self, shortest: float, longest: float) -> None:
        self.shortest = shortest
        self.longest = longest
        self.floor = shortest / 2
        """Pauses below this are ignored: samples do not show them."""
        self.seconds = shortest
        self._pauses: dict[int, tuple[float, float]] = {}

    @property
    def classes(self) -> int:
        """The number of classes of pauses that are remembered."""
        return len(self._pauses)

    def learn(self, pause: float) -> None:
        """Add a pause between two bursts."""
        if pause < self.floor:
            return
        # One long night must not outweigh many iterations.
        pause = min(pause, 2 * self.longest)
        k = math.floor(2 * math.log2(pause / self.floor))
        longest = max(pause, self._edge(max(self._pauses, default=k)))
        fade = math.exp(-pause / (self.memory * longest))
        faded = {j: (n * fade, s * fade) for j, (n, s) in self._pauses.items() if n * fade > 0.05}
        n, s = faded.get(k, (0.0, 0.0))
        faded[k] = (n + 1, s + pause)
        self._pauses = faded
        self._settle()

    def _edge(self, k: int) -> float:
        return self.floor * math.exp2(k / 2)

    def _settle(self) -> None:
        best, below = math.log(2), self.floor
        idle = math.fsum(s for _, s in self._pauses.values())
        count, above = math.fsum(n for n, _ in self._pauses.values()), idle
        for k in sorted(self._pauses):
            upper = min(self._edge(k), self.longest)
            if count < 1.5:
                break
            score = math.log(upper / below) * math.sqrt(above / idle)
            if score > best:
                best = score
                gap = below * min(math.sqrt(upper / below), self.most)
                self.seconds = min(max(gap, self.shortest), self.longest)
            count -= self._pauses[k][0]
            above = max(above - self._pauses[k][1], 0.0)
            below = self._edge(k + 1)


@dataclass(slots=True)
class _Phase:
    began: float
    moved: int
    """The counter when it began."""
    pause: float = 0.0
    """How long the job was idle before, until the gap has learned it."""
    active: float | None = None
    """When the job was last active before."""
    announced: bool = False


class PhaseFinder:
    """Detects the phases of one job, and returns each begin and end as soon as it is known.

    Bursts of less than `small` bytes in total are not a phase. A call that waits at the gate begins
    one nevertheless, since nothing moves before its turn; if it turns out small, its end says so.
    """

    def __init__(
        self,
        *,
        shortest_gap: float = SHORTEST_GAP,
        longest_gap: float = LONGEST_GAP,
        small: int = SMALL,
        gap: Gap | None = None,
    ) -> None:
        self.shortest_gap = shortest_gap
        self.small = small
        self._gap = gap or Gap(shortest_gap, longest_gap)
        self._now = -math.inf
        self._reported = -math.inf
        self._last = 0.0
        self._moved = 0
        self._busy_since: float | None = None
        self._active: float | None = None
        self._idle = 0.0
        self._run: _Run | None = None
        self._phase: _Phase | None = None
        self._marks = 0

    @property
    def gap(self) -> float:
        """Seconds that the job must be idle for its phase to be over."""
        return self._gap.seconds

    @property
    def due(self) -> float | None:
        """When the next sample is needed; None: not before the next data call."""
        if self._busy_since is not None:
            return self._now + min(max(self.gap / 4, 0.01), 0.1)
        if self._phase is None:
            return None
        return max(self._over_at(self._phase), self._now)

    @property
    def marked(self) -> bool:
        """True during a phase that the job itself has marked."""
        return self._marks > 0 and self._phase is not None

    def unmark(self) -> None:
        """The process that marked the phase is gone: it ends like an unmarked one."""
        self._marks = 0

    def began(self, now: float) -> Began | None:
        """The job marks the beginning of a phase; None if one is under way, which it now marks."""
        self._marks += 1
        now = self._tick(now)
        if self._phase is None:
            self._phase = _Phase(now, self._moved)
        return self._announce(self._phase)

    def ended(self, now: float, moved: int) -> Ended | None:
        """The job marks the end of a phase; None without a phase, or with processes still in it."""
        self._marks = max(self._marks - 1, 0)
        now = self._tick(now)
        if self._marks or self._phase is None or not self._phase.announced:
            return None
        self._moved = max(self._moved, moved)
        self._last = self._active = max(self._last, now)
        self._run = None
        phase, self._phase = self._phase, None
        self._reported = now
        return Ended(time=now, moved=self._moved - phase.moved)

    def sample(
        self, now: float, *, busy: bool, last_call: float, moved: int, waiting: bool | None = None
    ) -> Began | Ended | None:
        """Process the counters: a call in flight or waiting, the end of the last call, total bytes.

        `waiting`: a call waits at the gate; if unknown (None), a busy job is assumed to wait.
        """
        if not math.isfinite(now):
            return None
        last_call = last_call if math.isfinite(last_call) else self._last
        waits = busy if waiting is None else waiting
        previous = self._now
        self._tick(now)
        self._follow(previous, last_call, moved, busy=busy or waits)
        if waits and self._phase is None and self._run is not None:
            self._phase = self._after_pause(self._run)
        phase = self._phase
        if phase is None:
            return None
        if self._moved - phase.moved >= self.small:
            self._gap.learn(phase.pause)
            phase.pause = 0.0
            waits = True
        if waits and not phase.announced:
            return self._announce(phase)
        if self._busy_since is None and self._now >= self._over_at(phase):
            return self._end(phase)
        return None

    def _tick(self, now: float) -> float:
        self._now = max(self._now, now)
        return self._now

    def _follow(self, previous: float, last_call: float, moved: int, *, busy: bool) -> None:
        """Update the run of calls that is under way, and when the job was last active."""
        now = self._now
        gained, called = self._count(previous, last_call, moved)
        if called or busy:
            if self._run is None:
                self._run = _Run(self._began_at(previous) if called else now)
            self._run.moved += gained
        until = now if busy else self._last
        # A long call is activity even if it moves little: a sync.
        if self._run is not None and (
            self._long_call(until) or (called and self._run.moved * TRICKLE >= self.small)
        ):
            self._resume(self._run, until)
        elif not busy and self._active is not None:
            self._idle = now - self._active
        self._busy_since = (now if self._busy_since is None else self._busy_since) if busy else None
        if not busy and now - self._last >= self._gap.floor:
            self._run = None

    def _count(self, previous: float, last_call: float, moved: int) -> tuple[int, bool]:
        """Update the counters; return the new bytes, and whether there was a call."""
        gained = max(moved - self._moved, 0)
        last = min(last_call, self._now)
        called = gained > 0 or last > self._last
        if gained and last <= self._last and previous <= self._now:
            last = previous  # bytes without a time: they came after the last sample
        self._last, self._moved = max(self._last, last), self._moved + gained
        return gained, called

    def _long_call(self, until: float) -> bool:
        """Return True if the job has been in calls for at least the shortest gap."""
        return self._busy_since is not None and until - self._busy_since >= self.shortest_gap

    def _began_at(self, previous: float) -> float:
        """Return when a run of calls began, of which the first was over before a sample."""
        earliest = max(previous, self._last - 2 * self.shortest_gap)
        return (min(earliest, self._last) + self._last) / 2

    def _resume(self, run: "_Run", until: float) -> None:
        if self._phase is None:
            self._phase = self._after_pause(run)
        elif not run.active:
            self._gap.learn(self._idle)
        run.active, self._idle = True, 0.0
        self._active = max(until, self._active or until)

    def _after_pause(self, run: "_Run") -> _Phase:
        began = max(run.began, self._reported, self._active or run.began)
        pause = 0.0 if self._active is None else began - self._active
        self._idle = 0.0
        return _Phase(began, self._moved - run.moved, pause, self._active)

    def _over_at(self, phase: _Phase) -> float:
        return self._quiet_since(phase) + (FORGOTTEN if self._marks else self.gap)

    def _quiet_since(self, phase: _Phase) -> float:
        return max(phase.began, self._active or phase.began)

    def _announce(self, phase: _Phase) -> Began | None:
        if phase.announced:
            return None
        phase.announced = True
        self._reported = phase.began
        return Began(time=phase.began)

    def _end(self, phase: _Phase) -> Ended | None:
        end, moved = self._quiet_since(phase), self._moved - phase.moved
        small = moved < self.small and not self._marks
        if small:
            self._active = phase.active
        self._phase, self._marks = None, 0
        if not phase.announced:
            return None
        self._reported = end
        return Ended(time=end, moved=moved, small=small)


@dataclass(slots=True)
class _Run:
    """Calls without a pause between them that a sample could show."""

    began: float
    moved: int = 0
    active: bool = False
