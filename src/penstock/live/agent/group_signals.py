"""Distinguishes a signal sent to `penstock run` from one sent to its whole process group.

The kernel does not say which it was. So a child process in the same group blocks the signals: a
signal that is pending in the child too was sent to the group.
"""

import os
import select
import signal
import socket
from collections.abc import Collection

ANSWER_TIMEOUT = 1.0
"""Seconds that the child may take to answer; without an answer, assume one process."""
DELIVERY_TIME = 0.01
"""Seconds in which the kernel delivers a signal to all processes of a group."""


class GroupSignalProbe:
    """A child process that reports which signals it received; a context manager.

    It ends with its parent. It takes no lock, which another thread could hold during the fork.
    """

    def __init__(self, signals: Collection[int]) -> None:
        self._end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        self.pid = os.fork()
        if self.pid == 0:
            _serve(other.detach())
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        other.close()

    def __enter__(self) -> "GroupSignalProbe":
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()
        os.waitpid(self.pid, 0)

    def received(self, number: int) -> bool:
        """Return whether the child received the signal as well; consumes the signal there."""
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        try:
            self._end.send(bytes([number]))
            return bool(poll.poll(ANSWER_TIMEOUT * 1000)) and self._end.recv(1) == b"\1"
        except OSError:
            return False  # the child was killed


def _serve(end: int) -> None:
    try:
        # Job control is for the job: this process ends with its parent only.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        # Hold no pipe open: its reader would wait for this process.
        os.dup2(end, 0)
        os.closerange(1, os.sysconf("SC_OPEN_MAX"))
        while number := os.read(0, 1):
            os.write(0, b"\1" if signal.sigtimedwait(number, DELIVERY_TIME) else b"\0")
    finally:
        os._exit(0)
