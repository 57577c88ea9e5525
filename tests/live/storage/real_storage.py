"""Real storage for tests: small and throttled devices, and a GlusterFS volume. All need root.

Each is a context manager that takes down what it put up, whatever happens inside; `gluster` and
`throttled` are the fixtures.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from limits import HANG

FUSE_MAGIC = 0x65735546
PATIENCE = HANG
_THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device")
_BRICK = """\
volume posix
  type storage/posix
  option directory {directory}
end-volume
volume brick
  type features/locks
  subvolumes posix
end-volume
volume server
  type protocol/server
  option transport-type tcp
  option transport.socket.bind-address 127.0.0.1
  option transport.socket.listen-port {port}
  option auth.addr.brick.allow 127.0.0.1
  subvolumes brick
end-volume
"""
_REMOTE_BRICK = """\
volume brick{number}
  type protocol/client
  option transport-type tcp
  option remote-host 127.0.0.1
  option remote-port {port}
  option remote-subvolume brick
end-volume
"""
_VOLUME = """\
volume all
  type cluster/distribute
  subvolumes {bricks}
end-volume
"""


def _run(*command: str | Path) -> str:
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert result.returncode == 0, f"{command}: {result.stderr}"
    return result.stdout.strip()


def _await(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"{what} took more than {PATIENCE:g} s"
        time.sleep(0.02)


def _unmount(directory: Path) -> None:
    # Lazily: a process that a failed test left behind must not keep the mount.
    subprocess.run(["umount", "--lazy", directory], timeout=PATIENCE, check=False)


def statfs_type(directory: Path) -> int:
    """Return the kernel's number for the kind of file system."""
    return int(_run("stat", "--file-system", "--format=%t", directory), 16)


@contextmanager
def loop_device(
    directory: Path, *, size: int, below: Path = Path("/dev/shm"), features: str = ""
) -> Iterator[tuple[Path, Path]]:
    """Mount an ext4 on a loop device in memory; yield the mount and the device."""
    mount = directory / "loop"
    mount.mkdir()
    image = below / f"penstock-{os.getpid()}-{mount.stat().st_ino}.image"
    with ExitStack() as stack:
        stack.callback(image.unlink, missing_ok=True)
        with image.open("wb") as file:
            file.truncate(size)
        device = Path(_run("losetup", "--find", "--show", image))
        stack.callback(_run, "losetup", "--detach", device)
        _run("mkfs.ext4", "-q", *(["-O", features] if features else []), device)
        _run("mount", device, mount)
        stack.callback(_unmount, mount)
        yield mount, device


@contextmanager
def throttled_device(directory: Path, *, rate: int, size: int = 256 << 20) -> Iterator[Path]:
    """Mount an ext4 on a loop device in memory that writes `rate` bytes a second."""
    with loop_device(directory, size=size) as (mount, device), ExitStack() as stack:
        number = device.stat().st_rdev
        name = f"{os.major(number)}:{os.minor(number)}"
        # In the root group, where buffered writes are limited too.
        _THROTTLE.write_text(f"{name} {rate}")
        stack.callback(_THROTTLE.write_text, f"{name} 0")
        yield mount


@contextmanager
def small_memory(directory: Path, *, size: int) -> Iterator[Path]:
    """Mount a file system in memory that is full after `size` bytes."""
    mount = directory / "small"
    mount.mkdir()
    _run("mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "none", mount)
    try:
        yield mount
    finally:
        _unmount(mount)


def remount(directory: Path, options: str) -> None:
    """Give a mounted file system other options."""
    _run("mount", "-o", f"remount,{options}", directory)


@contextmanager
def _daemon(*command: str | Path) -> Iterator[None]:
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE / 3)
            except subprocess.TimeoutExpired:
                process.kill()


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _accepts(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def _is_mounted(directory: Path) -> bool:
    return any(
        line.split()[4] == str(directory)
        for line in Path("/proc/self/mountinfo").read_text().splitlines()
    )


@contextmanager
def gluster_volume(directory: Path, *, bricks: int = 2) -> Iterator[Path]:
    """Mount a GlusterFS volume of bricks in this directory.

    Bricks and client get their volume files from us and not from a glusterd, of which a host has
    one: a site's own is left alone, and several tests can have a volume at once.
    """
    directory = directory.resolve()
    mount = directory / "gluster"
    mount.mkdir()
    ports = _free_ports(bricks)
    with ExitStack() as stack:
        for k, port in enumerate(ports):
            brick, volume = directory / f"brick{k}", directory / f"brick{k}.vol"
            brick.mkdir()
            volume.write_text(_BRICK.format(directory=brick, port=port))
            files = ("-f", volume, "-l", f"{brick}.log", "-p", f"{brick}.pid")
            stack.enter_context(_daemon("glusterfsd", "--no-daemon", *files))
        for port in ports:
            _await(lambda port=port: _accepts(port), "a GlusterFS brick")  # type: ignore[misc]
        remote = [_REMOTE_BRICK.format(number=k, port=port) for k, port in enumerate(ports)]
        names = " ".join(f"brick{k}" for k in range(bricks))
        volume = directory / "gluster.vol"
        volume.write_text("".join([*remote, _VOLUME.format(bricks=names)]))
        log_files = ("-f", volume, "-l", directory / "gluster.log")
        stack.enter_context(_daemon("glusterfs", "--no-daemon", *log_files, mount))
        stack.callback(_unmount, mount)
        _await(lambda: _is_mounted(mount), "mounting GlusterFS")
        yield mount


def need_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")


def need(program: str) -> None:
    assert shutil.which(program), f"{program} is missing; run deploy/install-packages test as root"


@pytest.fixture
def throttled(tmp_path: Path) -> Callable[[int], AbstractContextManager[Path]]:
    """Mounts a device of a given rate: `with throttled(50 << 20) as directory`."""
    need_root()
    need("mkfs.ext4")
    if not _THROTTLE.exists():
        pytest.skip("a device is throttled by cgroup v1's blkio controller, which is not mounted")
    return lambda rate: throttled_device(tmp_path, rate=rate)


@pytest.fixture
def gluster(tmp_path: Path) -> Iterator[Path]:
    """A mounted GlusterFS volume of two bricks."""
    need_root()
    need("glusterfsd")
    with gluster_volume(tmp_path) as mount:
        yield mount
