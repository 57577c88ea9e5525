"""Processes that are not to outlive who started them."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def end_with_parent(number: signal.Signals) -> None:
    """Get a signal when the parent ends, however it does; at once if it has ended already."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent or parent == 1:
        os.kill(os.getpid(), number)
