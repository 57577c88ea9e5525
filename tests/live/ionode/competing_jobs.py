"""Jobs that write all they can to an emulated file system, and what each gets of its bandwidth."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from limits import HANG
from live.deployment.emulated import Machine
from live.ionode.frames import TOKEN
from live.ionode.real_node import RealNode

from penstock.live.agent.page_server import PageServer
from penstock.live.deployment import emulator
from penstock.live.deployment.emulator import Emulation
from penstock.live.protocol import messages
from penstock.live.protocol.shared_page import SharedPages

MIB = 1 << 20
RATE = 64 * MIB  # of all targets
BLOCK = 128 << 10
PATIENCE = HANG
WRITER = """
import os, sys, threading
name, threads, block = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
# One after the other, so that a job's files lie on all targets alike.
files = [os.open(f"{name}.{k}", os.O_CREAT | os.O_WRONLY) for k in range(threads)]
data = bytes(block)
def write(fd):
    while True:
        for k in range(4): assert os.pwrite(fd, data, k * block) == block
threading.stack_size(256 << 10)
for fd in files: threading.Thread(target=write, args=(fd,), daemon=True).start()
print("writing", flush=True)
sys.stdin.read()
os._exit(0)
"""


class SharedStorage:
    """Four emulated targets, and the jobs that write to them."""

    def __init__(self, folder: Path) -> None:
        emulation = Emulation(targets=4, rate=RATE / 4, latency=0.0, switch=0.0)
        self.folder, self.machine = folder, Machine(folder, emulation)
        self._pages: dict[str, SharedPages] = {}

    @contextmanager
    def io_node(self, *options: str) -> Iterator[RealNode]:
        """Serve jobs as one I/O node."""
        role = emulator.environment(self.machine.shared, io_node=0)
        role["LD_PRELOAD"] = str(emulator.target_library())
        root = self.machine.root
        with RealNode(self.folder, 0, *options, carries=root, environment=role) as node:
            yield node

    @contextmanager
    def job(self, name: str, threads: int, nodes: Sequence[messages.Node] = ()) -> Iterator[None]:
        """Run a job whose threads write, directly or through I/O nodes."""
        with ExitStack() as stack:
            pages = stack.enter_context(
                SharedPages([self.machine.root], job=name, patience=PATIENCE, token=TOKEN)
            )
            pages.assign(nodes)
            agent = stack.enter_context(PageServer(pages, self.folder / f"{name}.agent"))
            role = {} if nodes else emulator.environment(self.machine.shared)
            below = [] if nodes else [str(emulator.target_library())]
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-S", "-c", WRITER, name, str(threads), str(BLOCK)],
                    cwd=self.machine.root,
                    env=os.environ | role | agent.environment(below=below),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], PATIENCE)[0], "a job does not begin"
            self._pages[name] = pages
            stack.callback(self._pages.pop, name)
            self.until(lambda: self.written(name) >= threads * BLOCK)
            yield
            assert process.poll() is None
            assert pages.total("failed_open") == 0

    def written(self, name: str) -> int:
        """Return the bytes that a job has written."""
        return self._pages[name].total("write_bytes")

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for that to hold, for a bounded time."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def bandwidths(self, volume: int) -> dict[str, float]:
        """Return each job's bytes a second while all together write a volume."""

        def now() -> tuple[float, dict[str, int]]:
            return time.monotonic(), {name: self.written(name) for name in self._pages}

        (began, before), after = now(), now()
        deadline = began + PATIENCE
        while sum(after[1].values()) < sum(before.values()) + volume:
            assert after[0] < deadline, after
            time.sleep(0.02)
            after = now()
        return {name: (after[1][name] - before[name]) / (after[0] - began) for name in before}
