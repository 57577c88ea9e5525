"""Processes of a job whose gate is closed, and how to wait until they wait."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, cast

from limits import HANG

from penstock.identities import FileSystemId
from penstock.live.agent.page_server import PageServer
from penstock.live.protocol.shared_page import SharedPages

WAIT = HANG
LONGEST = 3 * HANG
"""Seconds that a call waits if nothing ends its wait: more than any test does."""
Process = subprocess.Popen[str]


def until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def next_line(process: Process, seconds: float = WAIT) -> str:
    """Return the next line that a process says, within so long."""
    stream = cast(IO[str], process.stdout)
    assert select.select([stream], [], [], seconds)[0], "it says nothing"
    return stream.readline().strip()


class Closed:
    """A job in `root` whose gate is closed."""

    def __init__(self, root: Path, folder: Path, stack: ExitStack, *others: Path) -> None:
        """`others`: roots on other file systems, one each."""
        self.root = root
        roots = [root, *others]
        file_systems = [FileSystemId(k) for k in range(len(roots))]
        self.pages = stack.enter_context(
            SharedPages(roots, file_systems=file_systems, longest_wait=LONGEST)
        )
        self._agent = stack.enter_context(PageServer(self.pages, folder / "agent.sock"))
        self._stack = stack
        self.pages.close_gate(10 * LONGEST)

    def python(self, program: str) -> Process:
        """Start a program that has fcntl, os, sys, and a mebibyte of zeros called MIB."""
        source = f"import fcntl, os, sys\nMIB = bytes(1 << 20)\n{program}"
        process = subprocess.Popen(
            [sys.executable, "-c", source],
            cwd=self.root,
            env=os.environ | self._agent.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        self._stack.callback(_end, process)
        return process

    def until_it_waits(self, process: Process) -> None:
        until(lambda: process.pid in self.waiting(), "it does not wait at the gate")
        # It says so before it sleeps.
        stat = Path(f"/proc/{process.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "S", "it does not sleep")

    def waiting(self) -> set[int]:
        """Return the processes that say that they wait."""
        return {thread.pid for thread, waits in self.pages.threads_in_call() if waits}

    def let_go(self, process: Process) -> None:
        """Open the gate; the program ends well."""
        self.pages.open_gate()
        assert process.wait(WAIT) == 0


def _end(process: Process) -> None:
    process.kill()
    process.wait(WAIT)
    cast(IO[str], process.stdout).close()


@contextmanager
def closed(root: Path, folder: Path, *others: Path) -> Iterator[Closed]:
    with ExitStack() as stack:
        yield Closed(root, folder, stack, *others)
