"""The real storage that other tests stand on is what they take it for."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from live.storage.real_storage import FUSE_MAGIC, gluster, gluster_volume, statfs_type, throttled

__all__ = ["gluster", "throttled"]
MIB = 1 << 20


@pytest.mark.rates
def test_a_throttled_device_holds_a_buffered_writer_to_its_rate(throttled: Any) -> None:
    """Written to the page cache at once; fsync waits for the device. Others only ever slow it."""
    rate, volume = 50 * MIB, 40 * MIB
    speeds = []
    with throttled(rate) as directory:
        for k in range(4):
            with (directory / f"f{k}").open("wb") as file:
                began = time.monotonic()
                file.write(os.urandom(MIB) * (volume // MIB))
                file.flush()
                os.fsync(file.fileno())
                speeds.append(volume / (time.monotonic() - began))
            if speeds[-1] >= 0.75 * rate:
                break
    assert max(speeds) == pytest.approx(rate, rel=0.25)


def test_a_throttled_device_is_taken_down(throttled: Any) -> None:
    with throttled(50 * MIB) as directory:
        mounted = directory.stat().st_dev
    assert directory.stat().st_dev != mounted
    number = f"{os.major(mounted)}:{os.minor(mounted)}"
    throttle = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device").read_text()
    assert number not in [line.split()[0] for line in throttle.splitlines()]


def test_gluster_returns_what_it_stored_on_both_bricks(gluster: Path) -> None:
    stored = {f"f{k}": os.urandom(100_000 + k) for k in range(32)}
    for name, content in stored.items():
        (gluster / name).write_bytes(content)
    assert {file.name: file.read_bytes() for file in gluster.iterdir()} == stored
    bricks = [
        {file.name for file in (gluster.parent / f"brick{k}").iterdir()} & set(stored)
        for k in range(2)
    ]
    assert all(bricks)
    assert set.union(*bricks) == set(stored)


def test_gluster_is_a_fuse_mount(gluster: Path) -> None:
    """Not declared coherent: an I/O node on another host must not serve it."""
    assert statfs_type(gluster) == FUSE_MAGIC


def test_a_volume_is_taken_down_with_a_file_still_open(gluster: Path, tmp_path: Path) -> None:
    """A test that failed in the middle must leave neither mount nor process."""
    (tmp_path / "other").mkdir()
    with gluster_volume(tmp_path / "other") as mount:
        file = os.open(mount / "f", os.O_WRONLY | os.O_CREAT)
        os.write(file, b"x")
    with pytest.raises(OSError, match="not connected"):
        os.write(file, b"y")
    with pytest.raises(OSError, match="not connected"):
        os.close(file)
    assert statfs_type(mount) != FUSE_MAGIC
    assert (gluster / "f").write_bytes(b"the other volume still works") > 0
