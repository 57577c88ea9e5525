"""What tuning learnt of an application: how fast I/O nodes served it with which value.

By access pattern: an application that reads and writes, or has several patterns, has estimates for
each. They are of intervals in which an I/O node served that application alone.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import msgspec

from penstock.model import Context, Value

ENOUGH = 3
"""Intervals from which on an estimate counts."""
MOST_VALUES = 16
"""Values of a parameter that are kept for a pattern, those that were tried last."""
NEWEST = 0.05
"""Least weight of the newest interval in an estimate: it follows an application that changes."""


class Estimate(msgspec.Struct, frozen=True, array_like=True):
    """The mean rate that an I/O node had with a value of a parameter."""

    value: int | float | str
    rate: float  # bytes per busy second
    intervals: int

    def plus(self, rate: float) -> "Estimate":
        """Return the estimate after one more interval."""
        weight = max(NEWEST, 1 / (self.intervals + 1))
        return Estimate(self.value, self.rate + weight * (rate - self.rate), self.intervals + 1)


Estimates = dict[str, dict[str, tuple[Estimate, ...]]]
"""By access pattern and parameter, the one that was tried longest ago first."""


def pattern_of(context: Context) -> str:
    """Return the key of an access pattern: what is done, and how."""
    return f"{context.operation} {context.pattern}"


@dataclass(frozen=True, slots=True)
class TunedValues:
    """The estimates of one application."""

    estimates: Mapping[str, Mapping[str, tuple[Estimate, ...]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.estimates)

    def plus(self, context: Context, parameter: str, value: Value, rate: float) -> "TunedValues":
        """Return the estimates after an interval in which an I/O node had a value."""
        pattern = pattern_of(context)
        of_pattern = self.estimates.get(pattern, {})
        known = of_pattern.get(parameter, ())
        before = next((each for each in known if each.value == value), Estimate(value, 0.0, 0))
        others = tuple(each for each in known if each.value != value)
        newer = (*others, before.plus(rate))[-MOST_VALUES:]
        return TunedValues({**self.estimates, pattern: {**of_pattern, parameter: newer}})

    def best(self, pattern: str, parameter: str, values: Collection[Value]) -> Value | None:
        """Return the value with the highest rate of those in use; None: too little is known."""
        known = [
            each
            for each in self.estimates.get(pattern, {}).get(parameter, ())
            if each.intervals >= ENOUGH and each.value in values
        ]
        return max(known, key=lambda each: each.rate).value if len(known) > 1 else None

    def usual(self, pattern: str | None) -> str | None:
        """Return the key of most intervals, of those with an application's usual pattern."""
        keys = [key for key in self.estimates if pattern is None or key.endswith(f" {pattern}")]
        return max(keys, key=self._intervals, default=None)

    def _intervals(self, key: str) -> int:
        of_key = self.estimates[key].values()
        return sum(each.intervals for known in of_key for each in known)
