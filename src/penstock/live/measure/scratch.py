"""What a measurement needs while it runs: signal handlers, a state directory, a data directory.

All of it is removed however the measurement ends.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import InputError
from penstock.live.agent.runner import Outcome
from penstock.live.protocol.state_directory import StateDirectory

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class InterruptedRun(KeyboardInterrupt):
    """A signal ended the measurement; what was measured before counts."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def check_interrupted(outcome: Outcome) -> None:
    """Raise InterruptedRun if a signal ended a job.

    Its exit status alone does not say: a Python that is interrupted while it starts ends with 1.
    """
    number = outcome.status - 128
    if number not in INTERRUPTS and outcome.status and outcome.signal is not None:
        number = outcome.signal
    if number in INTERRUPTS:
        raise InterruptedRun(number)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise InterruptedRun on SIGINT, SIGTERM and SIGHUP, so that the block cleans up."""

    def end(number: int, _: object) -> None:
        # A second signal would interrupt the clean-up.
        for other in old_handlers:
            signal.signal(other, signal.SIG_IGN)
        raise InterruptedRun(number)

    # A signal that nohup or a background shell ignores stays ignored.
    numbers = [n for n in INTERRUPTS if signal.getsignal(n) != signal.SIG_IGN]
    old_handlers = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


@contextmanager
def private_state() -> Iterator[Path]:
    """Give a temporary state directory."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-"))
    try:
        StateDirectory(folder)
    except InputError:  # $TMPDIR is too long for the sockets in it
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="penstock-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def in_memory() -> Iterator[Path]:
    """Give a temporary directory, in memory if possible, so that no disk adds delays."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="penstock-", dir=parent) as directory:
        yield Path(directory)
