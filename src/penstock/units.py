"""Quantities with units: "12 GiB", "2 GB/s", "500 us" as bytes, bytes per second, seconds.

kB, MB, ... are powers of 1000, KiB, MiB, ... of 1024. A number without a unit is in bytes, bytes
per second or seconds. Parsing is exact: it gives the float nearest to the decimal number.
"""

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from penstock.errors import InputError

BYTES: Mapping[str, int] = (
    {"B": 1, "KB": 1000}
    | {f"{prefix}B": 1000**i for i, prefix in enumerate("kMGTPE", 1)}
    | {f"{prefix}iB": 1024**i for i, prefix in enumerate("KMGTPE", 1)}
)
SECONDS: Mapping[str, Fraction | int] = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "\N{MICRO SIGN}s": Fraction(1, 10**6),
    "\N{GREEK SMALL LETTER MU}s": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": 1,
    "min": 60,
    "h": 3600,
    "d": 86400,
}
LOWEST_BANDWIDTH = 1e6
"""Bytes per second below which a bandwidth of storage is probably a mistake."""
_NUMBER_AND_UNIT = re.compile(
    r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(\S*)\s*", re.A
)
# Longer texts have digits that a float cannot hold, and take quadratic time to convert.
_LONGEST = 100
# From this number of the largest unit on, digits are not shown one by one.
_COUNTED = 1e9


def volume(value: float | str) -> float:
    """Return a volume in bytes: "12 GiB", "500 MB", or a number of bytes."""
    return _parse(value, "volume", BYTES, "bytes, or a number with B, kB, MB, GiB, ... ('12 GiB')")


def bandwidth(value: float | str) -> float:
    """Return a bandwidth in bytes per second: "2 GiB/s", or a number of bytes per second."""
    rates = {f"{unit}/s": factor for unit, factor in BYTES.items()}
    expected = "bytes per second, or a number with B/s, MB/s, GiB/s, ... ('2 GiB/s')"
    return _parse(value, "bandwidth", rates, expected)


def doubtful_bandwidth(name: str, value: float | str) -> str | None:
    """Return a warning if a valid bandwidth has no unit, or is lower than any storage's."""
    value = value if isinstance(value, str) else f"{value:g}"
    number, match = bandwidth(value), _NUMBER_AND_UNIT.fullmatch(value)
    if match is not None and not match[2]:
        meaning = f"means {show_volume(number)}/s"
        return f"{name} {value} has no unit and {meaning}; write the unit, as in '{match[1]} MB/s'"
    return f"{name} {value} is below 1 MB/s; check its unit" if number < LOWEST_BANDWIDTH else None


def seconds(value: float | str) -> float:
    """Return a duration in seconds: "30 min", "500 us", or a number of seconds."""
    expected = "seconds, or a number with ns, us, ms, s, min, h or d ('30 min')"
    return _parse(value, "duration", SECONDS, expected)


def is_volume(value: str) -> bool:
    """Whether a text ends in a unit of volume."""
    match = _NUMBER_AND_UNIT.fullmatch(value[:_LONGEST])
    return match is not None and match[2] in BYTES


def show_volume(value: float) -> str:
    """Return bytes as text: "12 GiB"."""
    return _show(value, [(unit, BYTES[unit]) for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB")])


def show_bandwidth(value: float) -> str:
    """Return bytes per second as text, always in MiB/s."""
    number = value / 2**20
    return f"{number:,.4g} MiB/s" if not 1e4 <= number < _COUNTED else f"{number:,.0f} MiB/s"


def show_count(count: int, noun: str) -> str:
    """Return a number with its noun: "1 job", "2,000 jobs"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def show_seconds(value: float) -> str:
    """Return a duration as text: "12.5 min"."""
    if value == 0:
        return "0 s"
    return _show(value, [(u, float(SECONDS[u])) for u in ("ns", "us", "ms", "s", "min", "h", "d")])


def _parse(
    value: float | str, kind: str, units: Mapping[str, Fraction | int], expected: str
) -> float:
    if isinstance(value, str):
        match = _NUMBER_AND_UNIT.fullmatch(value) if len(value) <= _LONGEST else None
        if match is None:
            raise InputError(f"{value[:_LONGEST]!r} is not a {kind}; give {expected}")
        number, unit = Fraction(match[1]), match[2]
        if unit and unit not in units:
            raise InputError(f"{value!r} is not a {kind}: {_unknown(unit, units)}; give {expected}")
        try:
            value = float(number * units[unit] if unit else number)
        except OverflowError:
            value = math.inf
    if not math.isfinite(value):
        raise InputError(f"a {kind} is {value:g}; give {expected}, finite")
    if value < 0:
        raise InputError(f"a {kind} is {value:g}; give zero or more")
    return float(value)


def _unknown(unit: str, units: Mapping[str, Fraction | int]) -> str:
    # Units are too short for a similarity search ("hours" is near "us"): only case and "/s".
    near = [u for u in units if u.lower().removesuffix("/s") == unit.lower().removesuffix("/s")]
    return f"unit {unit!r} is unknown" + (f", did you mean {near[0]!r}" if near else "")


def _show(value: float, units: list[tuple[str, float]]) -> str:
    whole = (pair for pair in reversed(units) if float(f"{abs(value) / pair[1]:.3g}") >= 1)
    unit, factor = next(whole, units[0])
    number = value / factor
    plain = 1000 <= abs(number) < _COUNTED
    return f"{number:,.0f} {unit}" if plain else f"{number:.3g} {unit}"
