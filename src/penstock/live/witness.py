"""Tells a signal that was sent to a process from one that was sent to its whole group.

Neither the sender nor the kernel says which it was. So a child stands by in the same group: what it
gets too, everybody in the group got.
"""

import os
import select
import signal
import struct
import time
from collections.abc import Collection
from contextlib import suppress

from penstock.live.parent import end_with_parent

WITHIN = 0.1
"""Seconds in which the child gets, and tells of, a signal that was sent to the group."""
STALE = 0.5
"""Seconds after which what the child told is of an earlier signal, which came here with another."""
_SEEN = struct.Struct("<id")


class Witness:
    """A child process that tells which signals it gets; a context manager.

    The signals must be blocked already. To be made before any thread is started: it forks.
    """

    def __init__(self, signals: Collection[int]) -> None:
        self._told, telling = os.pipe()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            _stand_by(signals, telling, parent)
        os.close(telling)
        self._seen: dict[int, float] = {}

    def __enter__(self) -> "Witness":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        os.close(self._told)

    def saw(self, number: int) -> bool:
        """Say whether a signal that came just now came to the group."""
        now = time.monotonic()
        poll = select.poll()
        poll.register(self._told, select.POLLIN)
        while self._seen.pop(number, 0.0) < now - STALE:
            if not poll.poll(max(now + WITHIN - time.monotonic(), 0.0) * 1000):
                return False
            if not (told := os.read(self._told, _SEEN.size)):
                return False  # it was killed, so nothing is known
            seen, when = _SEEN.unpack(told)
            self._seen[seen] = when
        return True


def _stand_by(signals: Collection[int], telling: int, parent: int) -> None:
    try:
        # Stopping and the like is for the job; this process must outlast all but its parent.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        end_with_parent(signal.SIGKILL, parent)
        # Nobody is to wait for the end of a pipe because of it.
        os.dup2(telling, 0)
        os.closerange(1, os.sysconf("SC_OPEN_MAX"))
        while True:
            os.write(0, _SEEN.pack(signal.sigwait(signals), time.monotonic()))
    finally:
        os._exit(1)
