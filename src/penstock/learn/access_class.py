"""Classes of applications by how they access files, and the curve that a class suggests.

An application of which no bandwidth was observed can be expected to scale with I/O nodes as others
of its class do (paper io-resources, IV-C: match an application to a known profile by its access
pattern and request size). The curve of a class is made of observations of other applications, and
of nothing else; without any, a class has no curve. Whoever uses it calls it a prior.
"""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.learn.observations import Spread
from penstock.model.observation import PATTERNS
from penstock.units import show_count

Size = Literal["small", "medium", "large"]
SMALL, LARGE = 128 << 10, 1 << 20
"""Requests below SMALL are dominated by their latency; those from LARGE on by bandwidth."""
LEAST_POINTS = 2
"""Bandwidths that say something of a curve's shape, or make a prior unnecessary."""


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
    bandwidth: float
    """The median bandwidth at the common count, in bytes per second."""
    applications: int
    of_class: AccessClass

    def __str__(self) -> str:
        applications = show_count(self.applications, "application")
        return f"the median of {applications} with {self.of_class}"

    @classmethod
    def of(
        cls, of_class: AccessClass, curves: Sequence[Mapping[int, float]]
    ) -> "ClassCurve | None":
        """Return the curve of applications with these bandwidths; None: too little is known.

        The common count is the one that most of them have, and of several the smallest.
        """
        curves = [curve for curve in curves if len(curve) >= LEAST_POINTS]
        if not curves:
            return None
        known = Counter(count for curve in curves for count in curve)
        common = min(known, key=lambda count: (-known[count], count))
        members = [curve for curve in curves if common in curve]
        shape = {}
        for count in sorted({count for curve in members for count in curve}):
            spread = Spread.of(c[count] / c[common] for c in members if count in c)
            assert spread is not None
            shape[count] = spread
        bandwidth = statistics.median(curve[common] for curve in members)
        return cls(shape=shape, bandwidth=bandwidth, applications=len(members), of_class=of_class)

    def points(self, own: Mapping[int, Spread]) -> dict[int, Spread]:
        """Return the points that an application lacks, in bytes per second.

        They are scaled to its own bandwidths; without any, to the median of the class.
        """
        units = [
            point.median / self.shape[count].median
            for count, point in own.items()
            if count in self.shape
        ]
        if own and not units:
            return {}
        unit = statistics.median(units) if units else self.bandwidth
        return {
            count: Spread(
                median=part.median * unit,
                low=part.low * unit,
                high=part.high * unit,
                observations=0,
            )
            for count, part in self.shape.items()
            if count not in own
        }
