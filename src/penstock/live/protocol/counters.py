"""Sums over the counters of a job, and how often its agent reports them."""

from collections.abc import Mapping

COUNTER_INTERVAL = 1.0
"""Seconds between two reports of a job's counters."""
FAIL_OPENS = ("failed_open", "gave_up", "interrupted", "lapses", "overdue", "policy_failed")
"""Counters of calls that should have been held or forwarded, and were not."""


def forwarded_bytes(counters: Mapping[str, int]) -> int:
    """Return the bytes that I/O nodes transferred."""
    return counters.get("forwarded_read_bytes", 0) + counters.get("forwarded_write_bytes", 0)


def direct_bytes(counters: Mapping[str, int]) -> int:
    """Return the bytes transferred without an I/O node, calls left to the kernel included."""
    total = counters.get("read_bytes", 0) + counters.get("write_bytes", 0)
    # A page read while the job counts may show the parts before the whole.
    return max(total - forwarded_bytes(counters), 0) + counters.get("left_bytes", 0)


def fail_opens(counters: Mapping[str, int]) -> int:
    """Return the number of calls that should have been held or forwarded, and were not."""
    return sum(counters.get(cause, 0) for cause in FAIL_OPENS)
