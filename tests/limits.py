"""How long things may take: as long as was promised where the machine keeps time, else longer."""

import os

QUIET = "PENSTOCK_QUIET_MACHINE" in os.environ
"""Whether nothing else runs here, as `make rates` says."""
BUSY = 8.0
"""How many times as long everything may take on a machine that does other things too."""
HANG = 120.0
"""Seconds after which what has not happened will not happen, on a busy machine too."""
COMPUTING = 800
"""Seconds for a command that computes, on a busy machine; below pytest's limit, to show more."""


def within(seconds: float) -> float:
    """Return how long something may take here that is promised within these seconds."""
    return seconds if QUIET else BUSY * seconds
