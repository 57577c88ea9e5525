"""What a measurement has around it for as long as it lasts: signals, a state, a directory.

Whatever ends it, nothing of them is left behind.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import InputError
from penstock.live.protocol.state_directory import StateDirectory

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class InterruptedRun(KeyboardInterrupt):
    """A signal ended the work; what was measured before counts."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def interruptible() -> Iterator[None]:
    """Let all signals that ask for an end unwind the block, so that nothing is left behind."""

    def end(number: int, _: object) -> None:
        # One is enough: the next would break off the cleaning.
        for other in before:
            signal.signal(other, signal.SIG_IGN)
        raise InterruptedRun(number)

    # What nohup, or a shell in the background, ignores stays ignored.
    heeded = [n for n in INTERRUPTS if signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def private_state() -> Iterator[Path]:
    """Give a state directory that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-"))
    try:
        StateDirectory(folder)
    except InputError:  # $TMPDIR is too long a name for sockets in it
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="penstock-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def in_memory() -> Iterator[Path]:
    """Give a directory without a disk's own delays, where there is one; it is gone afterwards."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="penstock-", dir=place) as directory:
        yield Path(directory)
