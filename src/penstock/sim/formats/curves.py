"""Bandwidth curves as plain data: an object of count to bandwidth, {"0": 200, "1": 77.6}."""

from collections.abc import Mapping

from penstock.errors import InputError
from penstock.model import Curve

Points = dict[str, float]


def parse(points: Mapping[str, float], where: str) -> Curve:
    """Return the curve, or raise InputError that begins with `where`."""
    counts = {}
    for text, bandwidth in points.items():
        if not text.isascii() or not text.isdigit():
            raise InputError(
                f"{where}: {text!r} is no number of resources; give 0 (direct access), 1, 2, ..."
            )
        if int(text) in counts:
            raise InputError(f"{where}: the count {int(text)} is given twice; give it once")
        counts[int(text)] = bandwidth
    try:
        return Curve.of(counts)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def plain(curve: Curve) -> Points:
    """Return the curve as it is written."""
    return {str(n): b for n, b in zip(curve.counts, curve.bandwidths, strict=True)}
