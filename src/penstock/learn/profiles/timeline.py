"""When a run did I/O: bytes on a fine grid of time, and the phases found in it.

Whatever a log has (every request, bins, first and last access of a file) goes onto one grid of a
fixed number of bins, so that a log with a billion requests takes no more memory than a short one.
The phase finder of live jobs detects the phases: it is fed each run of busy bins.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.learn.periods import Period
from penstock.learn.phases import SMALL, Began, PhaseFinder
from penstock.learn.profiles.profile import Heat, IoPhase

Floats = NDArray[np.float64]
BINS, COLUMNS, ROWS = 1 << 16, 64, 16
FINEST = 1e-3
"""Seconds of a bin at least."""
LONGEST_GAP = 5.0
PART = 100
"""Bursts below this part of all bytes are no phase, however small the run."""


class Grid:
    """Bytes in bins of equal width from 0 on."""

    def __init__(self, seconds: float, bins: int) -> None:
        self.bins = bins
        self.width = seconds / bins
        self._bytes = np.zeros(bins)
        self._slope = np.zeros(bins + 1)
        self._sums: Floats | None = None

    def add(self, begin: Floats, end: Floats, volume: Floats) -> None:
        """Add transfers, each spread evenly from its begin to its end."""
        self._sums = None
        limit = self.bins * self.width
        begin = np.clip(begin, 0.0, limit)
        end = np.clip(end, begin, limit)
        first, last = self._bin(begin), self._bin(end)
        inside = first == last
        np.add.at(self._bytes, first[inside], volume[inside])
        begin, end, first, last = begin[~inside], end[~inside], first[~inside], last[~inside]
        rate = volume[~inside] / (end - begin)
        np.add.at(self._bytes, first, rate * ((first + 1) * self.width - begin))
        np.add.at(self._bytes, last, rate * (end - last * self.width))
        np.add.at(self._slope, first + 1, rate * self.width)
        np.add.at(self._slope, last, -rate * self.width)

    def _bin(self, time: Floats) -> NDArray[np.int64]:
        return np.minimum(time / self.width, self.bins - 1).astype(np.int64)

    @property
    def values(self) -> Floats:
        """Return the bytes of each bin."""
        total = self._bytes + np.cumsum(self._slope[:-1])
        # What sums and differences of large numbers leave behind is no traffic.
        total[total < 1e-6 * max(float(total.max(initial=0.0)), 1.0)] = 0.0
        return total

    def between(self, begin: float, end: float) -> float:
        """Return the bytes in the bins from a begin to an end."""
        if self._sums is None:
            self._sums = np.concatenate(([0.0], np.cumsum(self.values)))
        a, b = round(begin / self.width), round(end / self.width)
        return float(self._sums[b] - self._sums[a])


class Stretch(NamedTuple):
    """Bins next to each other that all have bytes."""

    begin: float
    end: float
    moved: float


class Timeline:
    """When the processes of a run read and wrote."""

    def __init__(self, seconds: float, processes: int) -> None:
        seconds = max(seconds, FINEST)
        bins = max(min(BINS, int(seconds / FINEST)), 1)
        self.seconds, self.processes = seconds, processes
        self.read, self.written = Grid(seconds, bins), Grid(seconds, bins)
        self.rows = min(processes, ROWS)
        self._heat = {
            write: [Grid(seconds, COLUMNS) for _ in range(self.rows)] for write in (False, True)
        }
        self.resolution = self.read.width

    def add(
        self, begin: ArrayLike, end: ArrayLike, volume: ArrayLike, *, rank: ArrayLike, write: bool
    ) -> None:
        """Add transfers of one rank, or with one rank each; rank -1 is unknown."""
        first, last, moved = (
            np.atleast_1d(np.asarray(values, np.float64)) for values in (begin, end, volume)
        )
        (self.written if write else self.read).add(first, last, moved)
        ranks = np.broadcast_to(np.asarray(rank, np.int64), moved.shape)
        valid = (ranks >= 0) & (ranks < self.processes)
        rows = np.where(valid, ranks * self.rows // self.processes, -1)
        for row, grid in enumerate(self._heat[write]):
            own = rows == row
            if own.any():
                grid.add(first[own], last[own], moved[own])
            if not valid.all():
                grid.add(first[~valid], last[~valid], moved[~valid] / self.rows)

    @property
    def heat(self) -> Heat:
        """Return it coarsely, by groups of ranks."""
        edges = [-(-k * self.processes // self.rows) for k in range(self.rows + 1)]
        names = [str(a) if b - a == 1 else f"{a}-{b - 1}" for a, b in pairwise(edges)]
        return Heat(
            ranks=tuple(names),
            written=tuple(tuple(row.values.tolist()) for row in self._heat[True]),
            read=tuple(tuple(row.values.tolist()) for row in self._heat[False]),
        )

    def stretches(self) -> list[Stretch]:
        """Return where there is I/O."""
        busy = self.read.values + self.written.values > 0
        edges = np.flatnonzero(np.diff(np.concatenate(([False], busy, [False])).astype(np.int8)))
        times = (edges * self.resolution).tolist()
        return [
            Stretch(begin=a, end=b, moved=self.read.between(a, b) + self.written.between(a, b))
            for a, b in zip(times[::2], times[1::2], strict=True)
        ]

    def phases(self) -> tuple[IoPhase, ...]:
        """Return the phases, by the gap that the run as a whole teaches."""
        stretches = self.stretches()
        total = sum(stretch.moved for stretch in stretches)
        shortest = max(0.05, 2 * self.resolution)
        small = max(int(min(SMALL, total / PART)), 1)
        first = PhaseFinder(
            shortest_gap=shortest, longest_gap=max(LONGEST_GAP, 4 * shortest), small=small
        )
        for _ in _spans(first, stretches):
            pass
        # All is over: what the last phases taught holds for the first ones, too.
        again = PhaseFinder(shortest_gap=first.gap, longest_gap=first.gap, small=small)
        return tuple(self._phase(*span) for span in _spans(again, stretches))

    def _phase(self, begin: float, end: float) -> IoPhase:
        return IoPhase(
            began=begin,
            ended=end,
            read=self.read.between(begin, end),
            written=self.written.between(begin, end),
        )


def w_iter_of(phases: tuple[IoPhase, ...]) -> float | None:
    """Return the characteristic time, as it is learnt of live jobs.

    None below three phases: two that are some time apart do not make a period.
    """
    if len(phases) < 3:
        return None
    period = Period()
    for phase in phases:
        period.began(phase.began)
        period.ended(phase.ended, phase.seconds)
    return period.w_iter_


def _spans(finder: PhaseFinder, stretches: Sequence[Stretch]) -> Iterator[tuple[float, float]]:
    """Yield begin and end of phases."""
    began = 0.0
    for now, last, moved, busy in _samples(finder, stretches):
        event = finder.sample(now, busy=busy, last_call=last, moved=int(moved), waiting=False)
        if isinstance(event, Began):
            began = event.time
        elif event is not None and not event.small:
            yield began, event.time


def _samples(
    finder: PhaseFinder, stretches: Sequence[Stretch]
) -> Iterator[tuple[float, float, float, bool]]:
    """Yield the time, the end of the last call, the bytes so far, and whether a call is under way.

    Samples are taken when a live agent would take them.
    """
    moved = last = 0.0
    for stretch in (*stretches, None):
        until = last + 1e6 if stretch is None else stretch.begin
        if finder.due is not None and finder.due < until:
            yield finder.due, last, moved, False
        # Just before the next call: the finder learns pauses from samples that show them.
        yield float(np.nextafter(until, last)), last, moved, False
        if stretch is not None:
            yield stretch.begin, last, moved, True
            moved, last = moved + stretch.moved, stretch.end
            yield last, last, moved, False
