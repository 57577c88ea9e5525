"""Classes of applications by how they access files, and the curve that a class suggests.

An application of which no bandwidth was observed can be expected to scale with I/O nodes as others
of its class do (paper io-resources, IV-C: match an application to a known profile by its access
pattern and request size). The curve of a class is made of observations of other applications, and
of nothing else; without any, a class has no curve. Whoever uses it calls it a prior. From a user's
own applications it is a curve with bandwidths; from other users' it is a shape.
"""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.learn.observations import LARGEST, SMALLEST, Spread
from penstock.model.observation import PATTERNS
from penstock.units import show_count

Size = Literal["small", "medium", "large"]
SMALL, LARGE = 128 << 10, 1 << 20
"""Requests below SMALL are dominated by their latency; those from LARGE on by bandwidth."""
LEAST_POINTS = 2
"""Bandwidths that say something of a curve's shape, or make a prior unnecessary."""
LEAST_USERS = 3
"""Other users without whom nothing is said of a class: a median of fewer is one user's figure."""
STEPS = 8
"""Steps per factor of two in which the shape of other users' curves is told."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class AccessClass:
    """Applications with the same access pattern and similar requests."""

    pattern: str
    size: Size

    @classmethod
    def of(cls, pattern: str | None, request_size: float | None) -> "AccessClass | None":
        """Return the class; None: the pattern is unknown, or the size of requests."""
        if pattern not in PATTERNS or not request_size:
            return None
        size: Size = "large" if request_size >= LARGE else "medium"
        return cls(pattern=pattern, size="small" if request_size < SMALL else size)

    def __str__(self) -> str:
        return f"{self.pattern}, {self.size} requests"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCurve:
    """The median over the curves of a class, each divided by its bandwidth at one count."""

    shape: Mapping[int, Spread]
    """Bandwidth relative to that at the common count."""
    bandwidth: float | None
    """The median bandwidth at the common count, in bytes per second; None: not to be known."""
    applications: int
    of_class: AccessClass
    users: int = 0  # whose applications they are; 0: all are those of the user who asks

    def __str__(self) -> str:
        applications = show_count(self.applications, "application")
        of = f" of {show_count(self.users, 'other user')}" if self.users else ""
        return f"the median of {applications}{of} with {self.of_class}"

    @classmethod
    def of(
        cls, of_class: AccessClass, curves: Sequence[Mapping[int, float]]
    ) -> "ClassCurve | None":
        """Return the curve of a user's own applications; None: too little is known.

        The common count is the one that most of them have, and of several the smallest.
        """
        curves = [curve for curve in curves if len(curve) >= LEAST_POINTS]
        if not curves:
            return None
        common = _common(curves)
        members = [curve for curve in curves if common in curve]
        shape = _relative(members, common)
        bandwidth = statistics.median(curve[common] for curve in members)
        return cls(shape=shape, bandwidth=bandwidth, applications=len(members), of_class=of_class)

    @classmethod
    def of_others(
        cls, of_class: AccessClass, curves: Sequence[Sequence[Mapping[int, float]]]
    ) -> "ClassCurve | None":
        """Return what the applications of several other users suggest: `curves` are by user.

        Each user counts once, however many applications he has. It is a shape without bandwidths,
        at counts that enough users know, in steps too coarse to tell one user's figures.
        """
        known = [[curve for curve in several if len(curve) >= LEAST_POINTS] for several in curves]
        known = [several for several in known if several]
        if len(known) < LEAST_USERS:
            return None
        common = _common([{n: 1.0 for curve in several for n in curve} for several in known])
        members = [[curve for curve in several if common in curve] for several in known]
        members = [several for several in members if several]
        of_user = [
            {count: part.median for count, part in _relative(several, common).items()}
            for several in members
        ]
        shape = {}
        for count in sorted({count for parts in of_user for count in parts}):
            values = [parts[count] for parts in of_user if count in parts]
            if len(values) >= LEAST_USERS:
                part = _coarse(statistics.median(values))
                shape[count] = Spread(median=part, low=part, high=part, observations=0)
        if len(shape) < LEAST_POINTS:
            return None
        return cls(
            shape=shape,
            bandwidth=None,
            applications=sum(map(len, members)),
            of_class=of_class,
            users=len(members),
        )

    def points(self, own: Mapping[int, Spread]) -> dict[int, Spread]:
        """Return the points that an application lacks, in bytes per second.

        They are scaled to its own bandwidths; without any, to the median of the user's own
        applications of the class; without any, no point is known.
        """
        units = [
            point.median / self.shape[count].median
            for count, point in own.items()
            if count in self.shape
        ]
        if own and not units:
            return {}
        unit = statistics.median(units) if units else self.bandwidth
        if unit is None:
            return {}
        return {
            count: Spread(
                median=part.median * unit,
                low=part.low * unit,
                high=part.high * unit,
                observations=0,
            )
            for count, part in self.shape.items()
            if count not in own and SMALLEST <= part.median * unit <= LARGEST
        }


def _common(curves: Sequence[Mapping[int, float]]) -> int:
    """Return the count that most curves have, and of several the smallest."""
    known = Counter(count for curve in curves for count in curve)
    return min(known, key=lambda count: (-known[count], count))


def _relative(curves: Sequence[Mapping[int, float]], common: int) -> dict[int, Spread]:
    """Return bandwidths relative to those at a count that all curves have."""
    shape = {}
    for count in sorted({count for curve in curves for count in curve}):
        spread = Spread.of(curve[count] / curve[common] for curve in curves if count in curve)
        assert spread is not None
        shape[count] = spread
    return shape


def _coarse(part: float) -> float:
    """Return the nearest of eight steps per factor of two."""
    return math.exp2(round(STEPS * math.log2(part)) / STEPS)
