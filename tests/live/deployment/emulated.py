"""Real processes on an emulated parallel file system."""

import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import IO, cast

import pytest
from limits import HANG

from penstock.live.deployment import emulator
from penstock.live.deployment.emulator import Emulation

MIB = 1 << 20
PATIENCE = HANG
WRITER = """
import os, sys, time
path, at, step, size, count = sys.argv[1], *map(int, sys.argv[2:])
fd, data = os.open(path, os.O_WRONLY | os.O_CREAT), bytes(size)
print("ready", flush=True)
time.sleep(max(0.0, float(sys.stdin.readline()) - time.monotonic()))
ends = []
for k in range(count):
    assert os.pwrite(fd, data, at + k * step) == size
    ends.append(time.monotonic())
print(*ends, flush=True)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """A process that writes `count` requests of `size` bytes, each `step` after the one before."""

    file: Path
    at: int = 0
    size: int = MIB
    step: int = 0
    count: int = 25
    io_node: int | None = None
    client: str | None = None

    def command(self) -> list[str]:
        numbers = (self.at, self.step or self.size, self.size, self.count)
        return [sys.executable, "-S", "-c", WRITER, str(self.file), *map(str, numbers)]


class Machine:
    """An emulated file system and the processes on it."""

    def __init__(self, directory: Path, emulation: Emulation) -> None:
        self.emulation = emulation
        self.root = directory / "root"
        self.root.mkdir()
        self.shared = directory / "emulation"
        emulation.create(self.shared, self.root)

    def environment(
        self, *, io_node: int | None = None, client: str | None = None
    ) -> Mapping[str, str]:
        libraries = (
            [emulator.target_library()]
            if client is None
            else [emulator.link_library(), emulator.target_library()]
        )
        role = emulator.environment(self.shared, io_node=io_node, client=client)
        return os.environ | role | {"LD_PRELOAD": ":".join(map(str, libraries))}

    def file_on(self, target: int, name: str) -> Path:
        """Make a file whose first stripe is on this target; the inode decides, so try."""
        for k in range(100):
            file = self.root / f"{name}.{k}"
            file.touch()
            if self.emulation.first_target(file) == target:
                return file
        raise AssertionError("no file came to that target")

    @contextmanager
    def started(self, writer: Writer) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            writer.command(),
            env=self.environment(io_node=writer.io_node, client=writer.client),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert read_lines(process) == ["ready"]
                yield process
            finally:
                process.kill()

    def bandwidth(self, *writers: Writer) -> float:
        """Let them begin at the same time; return the bandwidth that they reach together.

        They are let run until two of the runs agree, because a machine whose processors others
        use for long delays processes in ways that sleeping cannot make good.
        """
        runs = sorted(self._bandwidth(writers) for _ in range(2))
        while len(runs) < 10:
            gap, best = min((high / low, high) for low, high in pairwise(runs))
            if gap < 1.01:
                return best
            runs = sorted([*runs, self._bandwidth(writers)])
        raise AssertionError(f"no two runs agree: {runs}")

    def _bandwidth(self, writers: Sequence[Writer]) -> float:
        with ExitStack() as stack:
            processes = [stack.enter_context(self.started(writer)) for writer in writers]
            begin = time.monotonic() + 0.03  # so that all have heard of it
            for process in processes:
                go(process, begin)
            ends = [[float(word) for word in read_lines(process)] for process in processes]
        return sum(w.size / interval(times) for w, times in zip(writers, ends, strict=True))

    def run(self, program: str, *, client: str | None = None) -> str:
        result = subprocess.run(
            [sys.executable, "-c", program],
            cwd=self.root,
            env=self.environment(client=client),
            capture_output=True,
            text=True,
            check=True,
            timeout=HANG,
        )
        return result.stdout


@pytest.fixture
def memory() -> Iterator[Path]:
    """A directory without a disk's own delays, where there is one."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as directory:
        yield Path(directory)


def interval(ends: Sequence[float]) -> float:
    """Return the time from one end to the next.

    A busy machine delays some ends, but not those after them (docs/live/emulator.md); the median of
    intervals of half the run's length hardly sees that, nor a begin or an end of the run alone.
    """
    half = len(ends) // 2
    return median(late - early for early, late in zip(ends, ends[half:], strict=False)) / half


def go(process: subprocess.Popen[str], begin: float = 0.0) -> None:
    """Let a writer begin at that time of the monotonic clock."""
    stream = cast(IO[str], process.stdin)
    stream.write(f"{begin}\n")
    stream.flush()


def served_at_least(machine: Machine, requests: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while emulator.target_counters(machine.shared)[0].requests < requests:
        assert time.monotonic() < deadline


def read_lines(process: subprocess.Popen[str]) -> list[str]:
    """Return the words of a process's next line."""
    stream = cast(IO[str], process.stdout)
    assert select.select([stream], [], [], PATIENCE)[0], "a writer says nothing"
    return stream.readline().split()
