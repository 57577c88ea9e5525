"""What can be tuned at an I/O node, and what the best value may depend on."""

from dataclasses import dataclass
from typing import Literal

Value = int | float | str
Operation = Literal["read", "write", "mixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A setting of I/O nodes, and the values that are tried."""

    name: str
    """As in the I/O nodes' settings: "window", "depth", "aggregation", "scheduler"."""
    values: tuple[Value, ...]
    default: Value
    together: bool
    """All I/O nodes must have the same value for it to make sense (the window of TWINS)."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Context:
    """A situation in which a value is good or bad: one bandit each (thesis forwarding, 4.1.2)."""

    operation: Operation
    pattern: str
    """One of PATTERNS, or "unknown"."""
    size: int
    """Mean request size in bytes, rounded down to a power of two."""
    load: int
    """Clients per I/O node, rounded down to a power of two."""


def power_of_two(number: int) -> int:
    """Round a number down to a power of two, so that similar sizes share a context."""
    return 1 << (max(number, 1).bit_length() - 1)
