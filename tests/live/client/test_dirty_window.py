"""Shares govern storage, not copies in memory: writes are ahead of a device by a window at most."""

import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from limits import HANG
from live.ionode.real_node import RealNode
from live.storage.real_storage import loop_device, need, need_root, remount, small_memory, throttled

from penstock.config import Config
from penstock.config.sections import LiveSection
from penstock.errors import InputError
from penstock.live.agent.job_agent import JobAgent
from penstock.live.agent.page_server import PageServer
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.shared_page import SharedPages
from penstock.live.protocol.state_directory import StateDirectory

__all__ = ["throttled"]
Throttled = Callable[[int], AbstractContextManager[Path]]
MIB = 1 << 20
RATE, WINDOW, TOTAL = 16 * MIB, 4 * MIB, 24 * MIB
PATIENCE = HANG
WRITER = """
import ctypes, os, sys, time
how, total, piece = sys.argv[1], int(sys.argv[2]), bytes(1 << 19)
fd = os.open("data", os.O_CREAT | os.O_RDWR)
for k in range(total // len(piece)):
    if how == "pwrite": assert os.pwrite(fd, piece, k * len(piece)) == len(piece)
    else: assert os.write(fd, piece) == len(piece)
print("written", flush=True)
if how == "phase": ctypes.CDLL(None).penstock_phase_end()
elif how == "close": os.close(fd)
print("drained", flush=True)
if how == "phase":
    try: os.fsync(fd)
    except OSError as error: print(error.errno, flush=True)
    else: print(0, flush=True)
sys.stdin.read()
"""


class Device:
    """What reached the device below a mount since it was looked at first."""

    def __init__(self, mount: Path) -> None:
        number = mount.stat().st_dev
        self._stat = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat")
        self._before = self._sectors()

    def _sectors(self) -> int:
        return int(self._stat.read_text().split()[6])

    def bytes(self) -> int:
        return 512 * (self._sectors() - self._before)


@contextmanager
def job(
    root: Path,
    folder: Path,
    how: str,
    *,
    window: int,
    total: int = TOTAL,
    node: RealNode | None = None,
) -> Iterator[tuple[subprocess.Popen[str], SharedPages]]:
    """Let a job write `total` bytes, directly or through an I/O node."""
    with ExitStack() as stack:
        pages = stack.enter_context(SharedPages([root], patience=PATIENCE))
        pages.limit_dirty_data(window)
        pages.assign([] if node is None else [node.node])
        agent = stack.enter_context(PageServer(pages, folder / "agent"))
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-S", "-c", WRITER, how, str(total)],
                cwd=root,
                env=os.environ | agent.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(process.kill)
        yield process, pages
        assert pages.total("failed_open") == 0


def furthest_ahead(device: Device, pages: SharedPages) -> int:
    """Return by how much acknowledged writes were ahead of the device at most, until all are."""
    furthest, deadline = 0, time.monotonic() + PATIENCE
    while (acknowledged := pages.total("write_bytes")) < TOTAL:
        assert time.monotonic() < deadline, acknowledged
        furthest = max(furthest, acknowledged - device.bytes())
        time.sleep(0.002)
    return max(furthest, acknowledged - device.bytes())


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("how", ["write", "pwrite", "forwarded"])
def test_writes_are_ahead_of_the_device_by_a_window(
    throttled: Throttled, tmp_path: Path, how: str
) -> None:
    """Without it they are copies in memory, whoever's turn it is."""
    options = ["--dirty-window", str(WINDOW)] if how == "forwarded" else []
    with throttled(RATE) as root, ExitStack() as stack:
        node = None
        if how == "forwarded":
            node = stack.enter_context(RealNode(tmp_path, 0, *options))
        device, began = Device(root), time.monotonic()
        with job(root, tmp_path, "write" if node else how, window=WINDOW, node=node) as started:
            ahead = furthest_ahead(device, started[1])
            took = time.monotonic() - began
            assert node is None or started[1].total("forwarded_write_bytes") == TOTAL
    # A piece that has just been written, and what ends between two looks.
    assert ahead <= WINDOW + 2 * MIB
    assert took >= (TOTAL - WINDOW - 2 * MIB) / (1.5 * RATE)


def test_without_a_window_writes_run_ahead(throttled: Throttled, tmp_path: Path) -> None:
    """What the window is for; were it not so, the test above would show nothing."""
    with throttled(RATE) as root:
        device = Device(root)
        with job(root, tmp_path, "write", window=0) as (_, pages):
            assert furthest_ahead(device, pages) >= 2 * WINDOW


@pytest.mark.parametrize("how", ["phase", "close"])
def test_a_phase_and_a_large_file_end_when_the_window_has_drained(
    throttled: Throttled, tmp_path: Path, how: str
) -> None:
    with throttled(RATE) as root:
        device = Device(root)
        with job(root, tmp_path, how, window=WINDOW) as (process, _):
            assert (next_line(process), next_line(process)) == ("written", "drained")
            assert device.bytes() >= TOTAL


def test_fsync_tells_of_an_error_that_the_window_met(tmp_path: Path) -> None:
    """The kernel tells it once, and told us: an fsync that said yes would lose data."""
    need_root()
    need("mkfs.ext4")
    with ExitStack() as stack:
        below = stack.enter_context(small_memory(tmp_path, size=2 * TOTAL))
        device = loop_device(tmp_path, size=64 * MIB, below=below, features="^has_journal")
        mount, _ = stack.enter_context(device)
        # All is there but the data: only that will fail, and not what an fsync itself writes.
        with (mount / "data").open("wb") as file:
            file.write(bytes(TOTAL))
            os.fsync(file.fileno())
        os.sync()
        (image,) = below.iterdir()
        subprocess.run(["fallocate", "--dig-holes", image], check=True, timeout=PATIENCE)
        remount(below, f"size={shutil.disk_usage(below).used + WINDOW}")
        with job(mount, tmp_path, "phase", window=WINDOW) as (process, _):
            assert (next_line(process), next_line(process)) == ("written", "drained")
            assert next_line(process) == str(errno.ENOSPC)


def window_of(pages: SharedPages) -> int:
    return int.from_bytes(os.pread(pages.control_fd, 4, 156), "little")


def test_the_window_is_a_word_of_the_control_page(tmp_path: Path) -> None:
    with SharedPages([tmp_path]) as pages:
        assert window_of(pages) == 0
        pages.limit_dirty_data(WINDOW)
        assert window_of(pages) == WINDOW


def test_a_job_has_a_window_while_it_is_enforced(tmp_path: Path) -> None:
    """And no longer: who switches enforcement off gets today's writes back."""
    state, root = StateDirectory(tmp_path / "state"), tmp_path / "root"
    root.mkdir()
    config = Config(live=LiveSection(mode="enforce", dirty_window="4 MiB"))
    with ExitStack() as stack:
        stack.callback(launcher.down, state)
        launcher.up(
            Deployment(state=str(state.folder), roots=[str(root)], io_nodes=0, config=config)
        )
        begin = messages.BeginJob(
            name="job", pid=os.getpid(), command=["job"], user="me", protocol=messages.PROTOCOL
        )
        controller = stack.enter_context(ControlConnection(state.controller))
        accepted = controller.ask(begin, messages.JobAccepted)
        pages = stack.enter_context(SharedPages([root], job=accepted.job))
        job_agent = JobAgent(controller, begin, accepted, pages)
        for mode, window in (("enforce", WINDOW), ("observe", 0), ("enforce", WINDOW)):
            launcher.ask(state, messages.SetMode(mode=mode), messages.Done)
            deadline = time.monotonic() + PATIENCE
            while window_of(pages) != window:
                assert time.monotonic() < deadline, mode
                time.sleep(0.01)
        job_agent.end(0)


@pytest.mark.parametrize(("value", "window"), [(0, 0), ("64 MiB", 64 * MIB), (1 << 30, 1 << 30)])
def test_configured_windows(value: str | int, window: int) -> None:
    assert LiveSection(dirty_window=value).dirty_bytes() == window


@pytest.mark.parametrize("value", ["4 KiB", "2 GiB", -1, "a lot"])
def test_invalid_windows_are_refused(value: str | int) -> None:
    with pytest.raises(InputError, match=r"live\.dirty-window"):
        LiveSection(dirty_window=value).dirty_bytes()
