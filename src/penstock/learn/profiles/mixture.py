"""b(n) of a job that was never measured, from base patterns that were (thesis forwarding, 5.3).

A job's I/O is split into base patterns; each takes as long as the nearest measured one says:

    T(n) = sum of V_i / b_i(n),    b(n) = V / T(n)

which holds where patterns come one after the other. How far the nearest is, is part of the answer:
distances are in octaves (factors of two) of request size and processes, and a different operation,
layout or spatiality counts as several.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.data import mn4_patterns
from penstock.errors import InputError
from penstock.learn.profiles.profile import BasePattern, Layout, Operation
from penstock.model import Curve
from penstock.model.curve import DIRECT

OTHER_OPERATION, OTHER_LAYOUT, OTHER_SPATIALITY = 8.0, 8.0, 4.0
"""Octaves. Larger than most grids of sizes are wide: a like pattern of another size is nearer."""
FAR = 6.0
"""Octaves from which on a curve is a guess: a factor of eight in both sizes and processes."""
KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A base pattern that was measured: bandwidths in MB/s by number of I/O nodes."""

    name: str
    operation: Operation
    layout: Layout
    contiguous: bool
    request_size: float
    processes: int
    curve: Curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Which measured pattern stands for a part of a job, and how far it is from it."""

    part: BasePattern
    base: Base
    octaves: float
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """The curve of a job, and what it rests on."""

    curve: Curve
    matches: tuple[Match, ...]

    @property
    def octaves(self) -> float:
        """Return the mean distance, by volume."""
        volume = math.fsum(match.part.volume for match in self.matches)
        return math.fsum(match.octaves * match.part.volume for match in self.matches) / volume

    @property
    def guess(self) -> bool:
        """Say whether what was measured is too far away to be relied on."""
        return self.octaves > FAR


def shipped() -> tuple[Base, ...]:
    """Return the 189 patterns of MareNostrum 4: all of them writes."""
    return tuple(
        Base(
            name=f"{p.layout} {p.spatiality} {p.request_kb} KiB by {p.processes}",
            operation="write",
            layout="shared" if p.layout == "shared" else "file-per-process",
            contiguous=p.spatiality == "contiguous",
            request_size=p.request_kb * KIB,
            processes=p.processes,
            curve=p.curve("median"),
        )
        for p in mn4_patterns()
    )


def nearest(part: BasePattern, bases: Sequence[Base]) -> Match:
    """Return the measured pattern that is most like a part of a job."""
    return min((_match(part, base) for base in bases), key=lambda match: match.octaves)


def combine(parts: Sequence[BasePattern], bases: Sequence[Base]) -> Mixture:
    """Return the curve of a job made of some parts, at the counts that all of them know."""
    parts = [part for part in parts if part.volume > 0]
    if not parts:
        raise InputError("it moved no bytes, so that there is no bandwidth to tell")
    if not bases:
        raise InputError("there is no measured base pattern; measure some with 'penstock explore'")
    matches = tuple(nearest(part, bases) for part in parts)
    counts = set(matches[0].base.curve.counts)
    for match in matches:
        counts &= set(match.base.curve.counts)
    if not counts:
        raise InputError("the base patterns were measured at different numbers of I/O nodes")
    volume = math.fsum(part.volume for part in parts)
    return Mixture(
        curve=Curve.of(
            {
                n: volume
                / math.fsum(match.part.volume / match.base.curve.bandwidth(n) for match in matches)
                for n in counts
            }
        ),
        matches=matches,
    )


def error(predicted: Curve, measured: Curve) -> dict[int, float]:
    """Return the relative error of a curve at the counts that both have."""
    return {
        n: predicted.bandwidth(n) / measured.bandwidth(n) - 1
        for n in predicted.counts
        if n in measured.counts
    }


def _match(part: BasePattern, base: Base) -> Match:
    octaves, differences = 0.0, []
    if part.operation != base.operation:
        octaves += OTHER_OPERATION
        differences.append(f"measured as {base.operation}s")
    if part.layout != base.layout:
        octaves += OTHER_LAYOUT
        differences.append(f"measured as {base.layout}")
    if (part.spatiality == "contiguous") != base.contiguous:
        octaves += OTHER_SPATIALITY
        differences.append(f"measured {'contiguous' if base.contiguous else 'strided'}")
    for what, own, measured in (
        ("requests", part.request_size, base.request_size),
        ("processes", part.processes, base.processes),
    ):
        apart = math.log2(measured / own)
        octaves += abs(apart)
        if abs(apart) >= 0.5:
            word = "larger" if what == "requests" else "more"
            other = "smaller" if what == "requests" else "fewer"
            differences.append(f"{2 ** abs(apart):.3g}x {word if apart > 0 else other} {what}")
    return Match(part=part, base=base, octaves=octaves, differences=tuple(differences))


def direct_or(count: int) -> str:
    """Return a number of I/O nodes in words."""
    return "direct" if count == DIRECT else str(count)
