"""What a command leaves running when it ends: processes of its job that nobody manages any more."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MOMENT = 0.05
"""Seconds that processes have to end after the command that started them."""


def left_behind(agent: Path, proc: Path = Path("/proc")) -> list[int]:
    """Return this user's processes of the job whose agent has that socket, a moment from now."""
    if not list(_of_job(agent, proc)):
        return []
    time.sleep(MOMENT)
    return sorted(_of_job(agent, proc))


def _of_job(agent: Path, proc: Path) -> Iterator[int]:
    variable = b"PENSTOCK_AGENT=" + os.fsencode(agent)
    for process in proc.iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            with suppress(OSError):  # it has ended, or is another user's
                if variable in (process / "environ").read_bytes().split(b"\0"):
                    yield int(process.name)
