"""The forwarding layer on a real FUSE file system: GlusterFS, on the mount of its clients."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from limits import HANG
from live.client import test_programs
from live.client.test_programs import execute, nodes
from live.client.waiting_processes import closed
from live.ionode.real_node import RealNode
from live.storage.real_storage import gluster

from penstock.live.protocol.shared_page import SharedPages

__all__ = ["execute", "gluster", "nodes"]
MIB = 1 << 20
PROGRAMS = ("dd", "tar", "python", "sqlite", "threads")
WRITES_ON = """
import os
fd = os.open("f", os.O_CREAT | os.O_RDWR); os.write(fd, b"x" * 100000)
print("written", flush=True); input()
def outcome(call):
    try: return call()
    except OSError as error: return error.strerror
print(outcome(lambda: os.write(fd, b"y" * 100000)), os.lseek(fd, 0, 1))
print(outcome(lambda: os.fsync(fd)))
"""


@pytest.fixture
def root(gluster: Path) -> Path:
    return gluster


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_forwarded_byte_for_byte(
    name: str, execute: Any, pages: SharedPages, nodes: list[RealNode]
) -> None:
    """The kernel keeps one cache of a mount: what one process writes, all others read."""
    test_programs.test_forwarded(name, execute, pages, nodes)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_remapped_in_the_middle(
    name: str, execute: Any, pages: SharedPages, nodes: list[RealNode]
) -> None:
    test_programs.test_remapped_in_the_middle(name, execute, pages, nodes)


def test_synced_data_is_on_the_bricks_and_closed_files_are_closed(
    run: Any, root: Path, pages: SharedPages, nodes: list[RealNode]
) -> None:
    """A sync of the client's own descriptor says nothing of what the I/O node's wrote."""
    pages.assign([nodes[0].node])
    before = nodes[0].measured()
    run(
        sys.executable,
        "-c",
        "import os; fd = os.open('f', os.O_CREAT | os.O_WRONLY)\n"
        "for k in range(8): os.write(fd, bytes([k]) * 262144)\n"
        "os.fsync(fd); os.write(fd, b'end'); os.fdatasync(fd)\n"
        f"bricks = [f'{root.parent}/brick{{k}}/f' for k in range(2)]\n"
        "stored, = [name for name in bricks if os.path.exists(name)]\n"
        "data = b''.join(bytes([k]) * 262144 for k in range(8))\n"
        "assert open(stored, 'rb').read() == data + b'end'\n"
        "os.close(fd)\n",
    )
    after = nodes[0].measured()
    assert after.syncs - before.syncs == 2
    assert after.write_bytes - before.write_bytes == 2 * MIB + 3
    assert after.files == before.files == 0


def outcome_without_bricks(root: Path, environment: dict[str, str]) -> str:
    """Return what a program says whose volume loses its bricks after its first write."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITES_ON],
        cwd=root,
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "written\n"
            for pid in root.parent.glob("brick*.pid"):
                os.kill(int(pid.read_text()), signal.SIGKILL)
            return process.communicate("\n", timeout=60)[0]
        finally:
            process.kill()


def test_a_volume_that_loses_its_bricks_fails_its_programs(
    agent: Any, root: Path, pages: SharedPages, nodes: list[RealNode]
) -> None:
    """The I/O node's error is the program's: neither hidden, nor tried again elsewhere."""
    pages.assign([nodes[0].node])
    output = outcome_without_bricks(root, agent.environment())
    assert pages.total("forwarded_writes") == 1
    assert pages.total("failed_open") == 0
    assert output == (
        "Transport endpoint is not connected 100000\nTransport endpoint is not connected\n"
    )


def test_other_hosts_are_not_served_from_a_fuse_mount(root: Path, tmp_path: Path) -> None:
    """Its cache is this kernel's alone; a declaration does not change that."""
    token = tmp_path / "token"
    token.write_bytes(bytes(32))
    command = [sys.executable, "-m", "penstock.cli", "ionode", "--coherent", "--root", str(root)]
    command += ["--tcp", "0.0.0.0:0", "--token-file", str(token)]
    command += ["--socket", str(tmp_path / "data"), "--control", str(tmp_path / "control")]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    assert refused.returncode == 2
    assert f"'{root}' is on FUSE, which shows other hosts old data" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_locks_that_only_the_server_knows_of_end_with_their_unlock(
    root: Path, tmp_path: Path
) -> None:
    """The kernel does not tell of them: they are followed by the calls that the program makes."""
    cycle = "\n".join(
        [
            "f = os.open('f', os.O_CREAT | os.O_RDWR)",
            "fcntl.flock(f, fcntl.LOCK_EX); os.write(f, MIB); fcntl.flock(f, fcntl.LOCK_UN)",
            "fcntl.lockf(f, fcntl.LOCK_EX); os.write(f, MIB); os.close(f)",
            "f = os.open('f', os.O_RDWR); os.write(f, MIB)",
        ]
    )
    with closed(root, tmp_path) as job:
        process = job.python(cycle)
        job.until_it_waits(process)
        assert job.pages.total("locked") == 2
        job.let_go(process)
