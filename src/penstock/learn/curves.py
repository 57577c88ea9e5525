"""Approximate curves of jobs that were never measured, from the class of the curve.

Paper io-resources, VI-B and Fig. 11: measuring b(n) takes many runs, but to tell whether a job's
bandwidth rises, falls, peaks or stays with more resources takes little. The paper fits a polynomial
to all curves of a class and gives it to each of its jobs. It prints no degree, and does not say how
curves of jobs that differ a hundredfold become one. Here curves are divided by their peaks before
the fit, and a job's curve is the class's, at the counts that were measured, times the job's own
peak bandwidth. `scale` has the other ways to read it: divided by b(1) instead, or not at all, so
that all jobs of a class have the very same function, as the text says. The degree is three: on
curves measured at four counts that is the class's mean at each of them, while a parabola puts the
top of peaks at 4 of 1 to 8 where most of them have it at 2.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.polynomial import Polynomial

from penstock.errors import InputError
from penstock.model import Curve
from penstock.model.curve import Floats, Shape

DEGREE = 3
LEAST = 0.01
"""Lower limit of an approximation, relative to the peak: a polynomial may dip below zero."""
Scale = Literal["peak", "first", "none"]
"""What the curves of a class are divided by to become one: their peak, b(1), or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCurves:
    """The mean behaviour of each class, as parts of a curve's peak (or of b(1), or in bytes)."""

    polynomials: Mapping[Shape, Polynomial]
    scale: Scale = "peak"

    @classmethod
    def fit(
        cls, curves: Iterable[Curve], degree: int = DEGREE, *, scale: Scale = "peak"
    ) -> "ClassCurves":
        """Fit a polynomial to the normalised curves of each class."""
        points: dict[Shape, list[tuple[int, float]]] = {}
        for curve in curves:
            unit = _unit(curve, scale)
            points.setdefault(curve.shape(), []).extend(
                (n, curve.bandwidth(n) / unit) for n in curve.forwarded
            )
        fits = {}
        for shape, pairs in points.items():
            counts, parts = np.array(pairs).T
            distinct = len(np.unique(counts))
            fits[shape] = Polynomial.fit(counts, parts, min(degree, distinct - 1))
        return cls(polynomials=fits, scale=scale)

    def parts(self, shape: Shape, counts: Iterable[int]) -> Floats:
        """Return the curve of a class at counts, relative to what curves are divided by."""
        if shape not in self.polynomials:
            raise InputError(f"there is no curve of the class {shape} to learn from; add one")
        values: Floats = self.polynomials[shape](np.array(list(counts), np.float64))
        if self.scale == "peak":
            return np.clip(values, LEAST, 1.0)
        return np.clip(values, LEAST * values.max(), None)

    def approximate(self, curve: Curve) -> Curve:
        """Return the curve that follows from a curve's class, and its peak or b(1), alone."""
        parts = self.parts(curve.shape(), curve.forwarded) * _unit(curve, self.scale)
        return Curve(counts=curve.forwarded, bandwidths=tuple(parts.tolist()))


def _unit(curve: Curve, scale: Scale) -> float:
    values = curve.at(curve.forwarded)
    return {"peak": float(values.max()), "first": float(values[0]), "none": 1.0}[scale]
