"""Tells a signal that was sent to a process from one that was sent to its whole group.

Neither the sender nor the kernel says which it was. So a child stands by in the same group, with
the signals blocked: what waits for it too, everybody in the group got.
"""

import os
import select
import signal
import socket
from collections.abc import Collection

PATIENCE = 1.0
"""Seconds that the child may take to answer; then nothing is known."""
AT_ONCE = 0.01
"""Seconds in which the kernel has sent a signal to the last of a group, once the first has it."""


class Witness:
    """A child process that says which signals it got; a context manager.

    It ends when its parent does, and needs nothing that another thread's lock could withhold.
    """

    def __init__(self, signals: Collection[int]) -> None:
        self._end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        self._pid = os.fork()
        if self._pid == 0:
            _stand_by(other.detach())
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        other.close()

    def __enter__(self) -> "Witness":
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()
        os.waitpid(self._pid, 0)

    def saw(self, number: int) -> bool:
        """Say whether a signal that just came here came to the child as well; to be asked once."""
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        try:
            self._end.send(bytes([number]))
            return bool(poll.poll(PATIENCE * 1000)) and self._end.recv(1) == b"\1"
        except OSError:
            return False  # it was killed


def _stand_by(end: int) -> None:
    try:
        # Stopping and the like is for the job: this process only ends with its parent.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        # Nobody is to wait for the end of a pipe because of it.
        os.dup2(end, 0)
        os.closerange(1, os.sysconf("SC_OPEN_MAX"))
        while asked := os.read(0, 1):
            os.write(0, b"\1" if signal.sigtimedwait(asked, AT_ONCE) else b"\0")
    finally:
        os._exit(0)
