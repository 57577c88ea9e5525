"""Jobs that do I/O in bursts, as an agent sees them: samples of their counters."""

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.learn.phases import Began, Ended, PhaseFinder

MIB = 2**20


@dataclass(frozen=True)
class Burst:
    """Data calls without a pause, from start to end; bytes count evenly, a call at a time."""

    start: float
    end: float
    moved: int
    calls: int = 64


class Counters:
    """The counters of a job with these bursts."""

    def __init__(self, bursts: Sequence[Burst]) -> None:
        self.bursts = bursts
        self._starts = [burst.start for burst in bursts]
        self._before = np.concatenate([[0], np.cumsum([burst.moved for burst in bursts])]).tolist()

    def at(self, now: float) -> tuple[bool, float, int]:
        """Return busy, last_call and moved."""
        k = bisect.bisect_right(self._starts, now) - 1
        if k < 0:
            return False, 0.0, 0
        burst = self.bursts[k]
        if now >= burst.end:
            return False, burst.end, self._before[k + 1]
        length = burst.end - burst.start
        done = int((now - burst.start) / length * burst.calls)
        last = burst.start + done * length / burst.calls
        if done == 0:
            last = self.bursts[k - 1].end if k else 0.0
        return True, last, self._before[k] + burst.moved * done // burst.calls


def watch(
    finder: PhaseFinder, bursts: Sequence[Burst], times: Iterable[float]
) -> list[Began | Ended]:
    """Return what the finder says of samples at these times."""
    counters = Counters(bursts)
    events = []
    for now in times:
        busy, last_call, moved = counters.at(now)
        event = finder.sample(now, busy=busy, last_call=last_call, moved=moved, waiting=False)
        if event is not None:
            events.append(event)
    return events


def phases(events: Iterable[Began | Ended]) -> list[tuple[float, float, int]]:
    """Return (begin, end, bytes) of phases that ended; events must alternate, in order of time."""
    complete, began, before = [], None, -np.inf
    for event in events:
        assert event.time >= before, "events run backwards"
        before = event.time
        if isinstance(event, Began):
            assert began is None, "two begins without an end"
            began = event.time
        else:
            assert began is not None, "an end without a begin"
            if not event.small:
                complete.append((began, event.time, event.moved))
            began = None
    return complete


def periodic(
    rng: np.random.Generator,
    *,
    phases: int,
    compute: float,
    bursts: int = 1,
    burst: float = 0.05,
    pause: float = 0.0,
    jitter: float = 0.0,
    moved: int = 4 * MIB,
) -> list[Burst]:
    """Return phases of bursts with pauses between them, and compute times between phases."""

    def about(seconds: float) -> float:
        return seconds * float(rng.uniform(1 - jitter, 1 + jitter))

    now, sequence = 1.0, []
    for _ in range(phases):
        for k in range(bursts):
            now += about(pause) if k else 0.0
            end = now + about(burst)
            sequence.append(Burst(now, end, moved))
            now = end
        now += about(compute)
    return sequence


def every(step: float, bursts: Sequence[Burst], tail: float = 20.0) -> np.ndarray:
    """Return times of samples, evenly, until well after the last burst."""
    return np.arange(0.0, bursts[-1].end + tail, step)
