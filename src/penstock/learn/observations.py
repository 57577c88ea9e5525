"""What the phases of an application show: a bounded history of them, and medians over it.

The history keeps the newest phases for each number of I/O nodes that the application had; those
that were alone are replaced by newer ones that were alone only, for a busy site has few. Nothing
is derived from anything else: a bandwidth is the median over phases that had the file system to
themselves with that very number of I/O nodes. There is no clock here.
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from penstock.learn.phases import MEASURABLE

SMALLEST, LARGEST = 1e-9, 1e18
"""Limits of a bandwidth, as those of `model.Curve` (which imports NumPy); no volume or number of
I/O nodes exceeds the second."""
LONGEST = 1e9
"""Seconds that no phase, and no computation, exceeds: thirty years."""

PHASES_PER_COUNT = 16
"""Phases that are kept for each number of I/O nodes: the newest that are points of its curve, and
the newest of the others."""
MOST_COUNTS = 16
"""Numbers of I/O nodes that are kept; beyond, the one that was not seen for longest is dropped, if
possible one without a point of the curve."""


class ObservedPhase(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A phase that is over, as its job reported it."""

    bytes: int
    seconds: float  # for which it transferred, waits for its turn left out
    alone: bool  # no other phase transferred meanwhile, on the same file system
    compute: float | None = None  # seconds between the phase before, or the job's start, and it
    first: bool = False  # of its job: what came before may have been set-up
    apart: bool = False  # others transferred meanwhile, but none through its I/O nodes

    @property
    def is_possible(self) -> bool:
        """Whether its figures can be true: a curve must be able to hold what follows from them."""
        times = (self.seconds, 0.0 if self.compute is None else self.compute)
        if not (0 <= self.bytes <= LARGEST and all(0 <= time <= LONGEST for time in times)):
            return False
        return self._rate is None or SMALLEST <= self._rate <= LARGEST

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second of a phase that was alone, and long enough to be measured."""
        return self._rate if self.alone else None

    @property
    def lower_bound(self) -> float | None:
        """Bytes per second of a phase beside others that had its I/O nodes to itself.

        Alone it would have had as much or more.
        """
        return self._rate if self.apart and not self.alone else None

    @property
    def _rate(self) -> float | None:
        measured = self.seconds >= MEASURABLE and self.bytes > 0
        return self.bytes / self.seconds if measured else None

    def isolated_seconds(self, bandwidth: float | None) -> float:
        """Return how long it would have taken alone, if `bandwidth` is what it can have alone."""
        if self.alone or bandwidth is None:
            return self.seconds
        return min(self.seconds, self.bytes / bandwidth)


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The median of some observations, and their quartiles."""

    median: float
    low: float
    high: float
    observations: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Spread | None":
        """Return the spread of the values that are known; None: nothing is known."""
        known = [value for value in values if value is not None]
        if not known:
            return None
        low, median, high = (
            statistics.quantiles(known, n=4, method="inclusive") if len(known) > 1 else known * 3
        )
        return cls(median=median, low=low, high=high, observations=len(known))


@dataclass(frozen=True, slots=True)
class History:
    """The newest phases of an application, by number of I/O nodes; 0 is direct."""

    phases: Mapping[int, tuple[ObservedPhase, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.phases)

    def plus(self, io_nodes: int, phase: ObservedPhase) -> "History":
        """Return the history with one more phase, without the oldest if there are too many.

        A phase whose figures are impossible, as a hostile job may report them, is left out.
        """
        if not phase.is_possible:
            return self
        kept = {n: phases for n, phases in self.phases.items() if n != io_nodes}
        if len(kept) == MOST_COUNTS:
            pointless = (n for n, phases in kept.items() if not any(p.bandwidth for p in phases))
            del kept[next(pointless, next(iter(kept)))]
        same = _newest((*self.phases.get(io_nodes, ()), phase))
        return History({**kept, io_nodes: same})

    @classmethod
    def of(cls, phases: Mapping[int, Sequence[ObservedPhase]]) -> "History":
        """Return the history of stored phases, without those whose figures are impossible."""
        possible = {
            n: _newest([phase for phase in several if phase.is_possible])
            for n, several in list(phases.items())[-MOST_COUNTS:]
            if 0 <= n <= LARGEST
        }
        return cls({n: several for n, several in possible.items() if several})

    @property
    def curve(self) -> dict[int, Spread]:
        """Bytes per second, by number of I/O nodes, of phases that were alone."""
        spreads = {n: Spread.of(p.bandwidth for p in self.phases[n]) for n in sorted(self.phases)}
        return {n: spread for n, spread in spreads.items() if spread is not None}

    @property
    def lower_bounds(self) -> dict[int, Spread]:
        """The same of phases beside others that had their I/O nodes to themselves."""
        spreads = {n: Spread.of(p.lower_bound for p in self.phases[n]) for n in sorted(self.phases)}
        return {n: spread for n, spread in spreads.items() if spread is not None}

    @property
    def never_alone(self) -> int:
        """The phases that are kept, if none was alone for long enough to be measured; else 0."""
        return 0 if self.curve else sum(map(len, self.phases.values()))

    @property
    def only_short(self) -> bool:
        """Whether all phases that are kept were too short to be measured."""
        return all(each.seconds < MEASURABLE for kept in self.phases.values() for each in kept)

    @property
    def volume(self) -> Spread | None:
        """Bytes per phase."""
        return Spread.of(phase.bytes for _, phase in self._newest())

    @property
    def compute(self) -> Spread | None:
        """Seconds of computation per phase."""
        return Spread.of(phase.compute for _, phase in self._iterations())

    @property
    def phase_seconds(self) -> Spread | None:
        """Seconds per phase, of phases that were alone."""
        return Spread.of(
            phase.seconds for n in self.phases for phase in self.phases[n] if phase.alone
        )

    @property
    def w_iter(self) -> Spread | None:
        """Seconds per iteration, had the application been alone.

        A phase beside others is taken as long as its bytes would have taken at the curve's
        bandwidth, if that is known and is less.
        """
        bandwidth = {n: spread.median for n, spread in self.curve.items()}
        return Spread.of(
            phase.compute + phase.isolated_seconds(bandwidth.get(n))
            for n, phase in self._iterations()
            if phase.compute is not None
        )

    def _newest(self) -> Iterator[tuple[int, ObservedPhase]]:
        """Yield the newest phases of each number, whether they were alone or not."""
        return (
            (n, phase) for n, phases in self.phases.items() for phase in phases[-PHASES_PER_COUNT:]
        )

    def _iterations(self) -> list[tuple[int, ObservedPhase]]:
        """Return the phases after a known computation; first ones only if there are no others."""
        known = [(n, phase) for n, phase in self._newest() if phase.compute is not None]
        return [(n, phase) for n, phase in known if not phase.first] or known


def _newest(phases: Sequence[ObservedPhase]) -> tuple[ObservedPhase, ...]:
    """Return the newest points of the curve, lower bounds, and others, in their order."""
    number, kept = Counter[tuple[bool, bool]](), list[ObservedPhase]()
    for phase in reversed(phases):
        kind = phase.bandwidth is not None, phase.lower_bound is not None
        if number[kind] < PHASES_PER_COUNT:
            number[kind] += 1
            kept.append(phase)
    return tuple(reversed(kept))
