"""Limits of a daemon: it ends with its parent, and may open as many files as the system allows."""

import ctypes
import os
import resource
import signal
from contextlib import suppress

_PR_SET_PDEATHSIG = 1


def end_with_parent(number: signal.Signals, parent: int | None = None) -> None:
    """Have the kernel send a signal when the parent ends; send it now if the parent has ended.

    Give the parent's process id: without it, a parent that ended before this call is not noticed.
    """
    parent = os.getppid() if parent is None else parent
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard limit."""
    _, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (maximum, maximum))
