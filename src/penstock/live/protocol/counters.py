"""A job's counters, as its agent reports them: what they add up to, and how often they come."""

from collections.abc import Mapping

COUNTED_EVERY = 1.0
"""Seconds between two reports of a job's counters."""
FAIL_OPENS = ("failed_open", "gave_up", "interrupted", "lapses", "overdue", "policy_failed")
"""The counters of calls that were not held or forwarded as they should have been."""


def forwarded_bytes(counters: Mapping[str, int]) -> int:
    """Return what I/O nodes moved."""
    return counters.get("forwarded_read_bytes", 0) + counters.get("forwarded_write_bytes", 0)


def direct_bytes(counters: Mapping[str, int]) -> int:
    """Return what went past the I/O nodes, calls left to the kernel included."""
    moved = counters.get("read_bytes", 0) + counters.get("write_bytes", 0)
    # A page that is read while the job counts may show the parts before the whole.
    return max(moved - forwarded_bytes(counters), 0) + counters.get("left_bytes", 0)


def fail_opens(counters: Mapping[str, int]) -> int:
    """Return calls that were not held or forwarded as they should have been."""
    return sum(counters.get(cause, 0) for cause in FAIL_OPENS)
