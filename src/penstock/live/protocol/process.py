"""Limits of a process: it ends with its parent, and takes all descriptors it may have."""

import ctypes
import os
import resource
import signal
from contextlib import suppress

_PR_SET_PDEATHSIG = 1


def end_with_parent(number: signal.Signals, parent: int | None = None) -> None:
    """Get a signal when the parent ends, however it does; at once if it has ended already.

    Without the parent's process id, one that ended before this call is taken for the next.
    """
    parent = os.getppid() if parent is None else parent
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def take_all_descriptors() -> None:
    """Take as many descriptors as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
