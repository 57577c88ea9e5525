"""Bandwidth as a function of the number of resources: what a job can do with how many."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError

Floats = NDArray[np.float64]
SMALLEST, LARGEST = 1e-9, 1e18
"""Bandwidths, in whatever unit, that times and loads can be computed with."""
DIRECT = 0
"""The count that stands for no I/O node at all: straight to the file system."""
Shape = Literal["ascent", "descent", "peak", "neutral"]
"""How bandwidth changes with the number of resources (paper io-resources, Fig. 1)."""
TOLERANCE = 0.1
"""A curve that varies by up to this part of its peak is flat; the paper gives no figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Measured bandwidths, in any unit, at some counts of resources.

    Between two measured counts the bandwidth is interpolated linearly, beyond them it is unknown.
    Direct access (0) is another path, not a small number of I/O nodes: nothing is interpolated
    towards it.
    """

    counts: tuple[int, ...]
    bandwidths: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.counts or len(self.counts) != len(self.bandwidths):
            raise InputError("a curve needs at least one count, each with its bandwidth")
        if any(b <= a for a, b in zip(self.counts, self.counts[1:], strict=False)):
            raise InputError(f"a curve's counts {self.counts} must rise")
        if self.counts[0] < DIRECT:
            raise InputError(f"a curve has the count {self.counts[0]}; counts are zero or more")
        for count, bandwidth in zip(self.counts, self.bandwidths, strict=True):
            if not SMALLEST <= bandwidth <= LARGEST:
                raise InputError(
                    f"a curve has the bandwidth {bandwidth:g} at {count}; give a positive number, "
                    f"{SMALLEST:g} to {LARGEST:g}"
                )

    @classmethod
    def of(cls, points: Mapping[int, float]) -> "Curve":
        """Make a curve of count -> bandwidth, in any order."""
        counts = tuple(sorted(points))
        return cls(counts=counts, bandwidths=tuple(float(points[n]) for n in counts))

    @property
    def forwarded(self) -> tuple[int, ...]:
        """The measured counts other than direct access."""
        return tuple(n for n in self.counts if n != DIRECT)

    def choices(self, most: int, *, measured: bool = False, direct: bool = True) -> list[int]:
        """Return the counts whose bandwidth is known, up to `most`."""
        last = min(most, self.forwarded[-1]) if self.forwarded else 0
        between = range(self.forwarded[0], last + 1) if self.forwarded else ()
        counts: Iterable[int] = self.forwarded if measured else between
        start = [DIRECT] if direct and self.counts[0] == DIRECT else []
        return start + [n for n in counts if n <= most]

    def __contains__(self, n: int) -> bool:
        known = self.forwarded
        return n in self.counts or (n != DIRECT and bool(known) and known[0] <= n <= known[-1])

    def bandwidth(self, n: int) -> float:
        """Return the bandwidth with n resources, or raise InputError where it is unknown."""
        if n in self.counts:
            return self.bandwidths[self.counts.index(n)]
        known = self.forwarded
        if n not in self:
            raise InputError(
                f"a curve measured at {list(self.counts)} says nothing of {n} resources; "
                "measure that count, or ask for one in between"
            )
        first = self.counts.index(known[0])
        return float(np.interp(n, known, self.bandwidths[first:]))

    def at(self, counts: Iterable[int]) -> Floats:
        """Return the bandwidths at counts, all of which must be known."""
        return np.array([self.bandwidth(n) for n in counts])

    def shape(self, tolerance: float = TOLERANCE) -> Shape:
        """Return which of the paper's four behaviours the curve shows, direct access left out.

        Neutral: all bandwidths lie within `tolerance` of the peak. Else it goes by where the peak
        is: ascent at the largest count, descent at the smallest, peak in between; so a curve that
        dips goes to the end that is higher.
        """
        values = self.at(self.forwarded)
        if not len(values):
            raise InputError("a curve of direct access alone has no shape; measure other counts")
        if np.ptp(values) <= tolerance * values.max():
            return "neutral"
        top = int(values.argmax())
        if 0 < top < len(values) - 1:
            return "peak"
        return "ascent" if top else "descent"
