"""Weights at one I/O node are shares of real and of emulated storage while jobs compete for it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest
from limits import HANG
from live.deployment.emulated import Machine, memory
from live.ionode.frames import TOKEN
from live.ionode.real_node import RealNode
from live.storage.real_storage import throttled

from penstock.live.agent.page_server import PageServer
from penstock.live.deployment import emulator
from penstock.live.deployment.emulator import Emulation
from penstock.live.protocol import messages
from penstock.live.protocol.shared_page import SharedPages

__all__ = ["memory", "throttled"]
MIB = 1 << 20
RATE = 64 * MIB
WINDOW = 48 * MIB  # bytes of all jobs over which shares are compared
PATIENCE = HANG
WRITER = """
import mmap, os, sys, threading
name, flags = sys.argv[1], int(sys.argv[2])
data = mmap.mmap(-1, 524288)
def write(thread):
    fd = os.open(f"{name}.{thread}", os.O_CREAT | os.O_WRONLY | flags)
    while True:
        for k in range(4): assert os.pwrite(fd, data, k * 524288) == 524288
for thread in range(16): threading.Thread(target=write, args=(thread,), daemon=True).start()
sys.stdin.read()
os._exit(0)
"""
"""Overwrites its files; of sixteen requests some wait even where a thread is late."""


@dataclass(frozen=True, kw_only=True)
class Storage:
    """An I/O node on storage that takes RATE, one batch at a time."""

    root: Path
    node: RealNode
    at: messages.Node  # where jobs reach it
    flags: int  # with which a write is over when the storage has it
    tolerance: float

    @contextmanager
    def job(self, name: str) -> Iterator[None]:
        """Let a job write as much as it can."""
        with ExitStack() as stack:
            # A device that is busy for long is no fault here.
            pages = stack.enter_context(
                SharedPages([self.root], job=name, patience=PATIENCE, token=TOKEN)
            )
            pages.assign([self.at])
            socket = self.node.control.parent / f"{name}.agent"
            agent = stack.enter_context(PageServer(pages, socket))
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-S", "-c", WRITER, name, str(self.flags)],
                    cwd=self.root,
                    env=os.environ | agent.environment(),
                    stdin=subprocess.PIPE,
                )
            )
            stack.callback(process.kill)
            self.until(lambda: self.bytes_of(name) >= MIB)
            yield
            assert process.poll() is None
            assert pages.total("failed_open") == 0

    def weigh(self, **weights: float) -> None:
        assert isinstance(self.node.ask(messages.SetWeights(weights=weights)), messages.Done)

    def bytes_of(self, name: str) -> int:
        return self.node.measured().groups.get(name, 0)

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, self.node.measured()
            time.sleep(0.01)

    def window(self) -> tuple[dict[str, int], float]:
        """Return the bytes of each job while all together wrote a window, and their bandwidth."""
        began, before = time.monotonic(), self.node.measured()
        self.until(lambda: self.node.measured().write_bytes >= before.write_bytes + WINDOW)
        after, took = self.node.measured(), time.monotonic() - began
        moved = {
            name: after.groups.get(name, 0) - before.groups.get(name, 0) for name in ("a", "b")
        }
        return moved, (after.write_bytes - before.write_bytes) / took


@contextmanager
def on_a_throttled_device(request: pytest.FixtureRequest) -> Iterator[Storage]:
    mounts, folder = request.getfixturevalue("throttled"), request.getfixturevalue("tmp_path")
    with mounts(RATE) as root, RealNode(folder, 0, "--depth", "1") as node:
        yield Storage(root=root, node=node, at=node.node, flags=os.O_DIRECT, tolerance=0.15)


@contextmanager
def on_the_emulator(request: pytest.FixtureRequest) -> Iterator[Storage]:
    folder = request.getfixturevalue("memory")
    machine = Machine(folder, Emulation(targets=1, rate=RATE, latency=0.0, switch=0.0))
    emulated = emulator.environment(machine.shared, io_node=0)
    emulated["LD_PRELOAD"] = str(emulator.target_library())
    root = machine.root
    with RealNode(folder, 0, "--depth", "1", carries=root, environment=emulated) as node:
        yield Storage(root=root, node=node, at=node.remote, flags=0, tolerance=0.1)


@pytest.fixture(params=[on_a_throttled_device, on_the_emulator], ids=["throttled", "emulated"])
def storage(request: pytest.FixtureRequest) -> Iterator[Storage]:
    with request.param(request) as storage:
        yield storage


@pytest.mark.rates
def test_shares_are_by_weight_and_nothing_is_left_unused(storage: Storage) -> None:
    """Weights count from the next batch on; whoever is alone has the whole device."""
    together = []
    with storage.job("a"):
        with storage.job("b"):
            for weights in ({"a": 3.0, "b": 1.0}, {"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 3.0}):
                storage.weigh(**weights)
                moved, bandwidth = storage.window()
                together.append(bandwidth)
                ratio, expected = moved["b"] / moved["a"], weights["b"] / weights["a"]
                assert ratio == pytest.approx(expected, rel=storage.tolerance), weights
        storage.until(lambda: storage.node.measured().queued <= 16)  # what b left behind
        moved, alone = storage.window()
    assert moved["b"] <= MIB
    assert alone >= 0.7 * median(together), "its share of a quarter is no cap"
    # A device is throttled by slices of a tenth of a second.
    assert max(together) <= 1.25 * RATE, "the storage was the bottleneck"


@pytest.mark.rates
def test_a_job_without_a_weight_has_weight_one(storage: Storage) -> None:
    with storage.job("a"), storage.job("b"):
        storage.weigh(b=2.0)
        moved, _ = storage.window()
        assert moved["b"] / moved["a"] == pytest.approx(2, rel=storage.tolerance)


def test_an_invalid_weight_is_refused_before_its_job_comes(storage: Storage) -> None:
    """Kept for later, it would end the I/O node when the job connects."""
    storage.weigh(a=1.0, b=3.0)
    for weight in (0.0, -1.0):
        assert isinstance(
            storage.node.ask(messages.SetWeights(weights={"a": weight})), messages.Failure
        )
    with storage.job("a"), storage.job("b"):
        storage.window()  # both are served
