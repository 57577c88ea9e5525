"""An I/O node on another host, over TCP: for file systems that are the same everywhere."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from limits import HANG
from live.ionode.real_node import RealNode

from penstock.live.agent.page_server import PageServer
from penstock.live.protocol.messages import Node
from penstock.live.protocol.shared_page import SharedPages

TOKEN = bytes(range(32))
MIB = 1 << 20


@pytest.fixture
def pages(root: Path) -> Iterator[SharedPages]:
    with SharedPages([root], token=TOKEN, patience=3.0) as pages:
        yield pages


@pytest.fixture
def remote(tmp_path: Path, root: Path, pages: SharedPages) -> Iterator[RealNode]:
    token = tmp_path / "token"
    token.write_bytes(TOKEN)
    options = ["--tcp", "127.0.0.1:0", "--token-file", str(token), "--root", str(root)]
    with RealNode(tmp_path, 0, *options, "--coherent") as node:
        pages.assign([node.remote])
        yield node


def python(run: Any, program: str) -> str:
    output: str = run(sys.executable, "-c", "import errno, os, sys, time\n" + program).stdout
    return output


def test_programs_are_served_byte_for_byte(
    run: Any, remote: RealNode, root: Path, pages: SharedPages
) -> None:
    run("dd", "if=/dev/urandom", "of=one", "bs=3M", "count=4", "conv=fsync", "status=none")
    run("dd", "if=one", "of=two", "bs=100k", "status=none")
    run("tar", "cf", "all.tar", "one", "two")
    assert (root / "one").read_bytes() == (root / "two").read_bytes()
    assert pages.total("forwarded_write_bytes") == pages.total("write_bytes") >= 24 * MIB
    assert pages.total("forwarded_read_bytes") == pages.total("read_bytes") >= 12 * MIB
    assert pages.total("failed_open") == 0
    assert remote.measured().files == 0


@pytest.mark.security
def test_a_wrong_token_means_direct_access(run: Any, remote: RealNode, root: Path) -> None:
    with (
        SharedPages([root], token=bytes(32)) as pages,
        PageServer(pages, root.parent / "other.sock") as agent,
    ):
        pages.assign([remote.remote])
        command = ["dd", "if=/dev/zero", "of=f", "bs=1k", "count=3", "status=none"]
        environment = os.environ | agent.environment()
        subprocess.run(command, cwd=root, env=environment, check=True, timeout=HANG)
        assert pages.total("failed_open") == 3
    assert (root / "f").stat().st_size == 3072
    remote.until(lambda measured: measured.refused >= 1)


def test_a_file_of_another_name_by_now_is_direct(
    run: Any, remote: RealNode, root: Path, pages: SharedPages
) -> None:
    """Unlinked, or replaced by another inode: the I/O node cannot find the same file."""
    python(
        run,
        "fd = os.open('f', os.O_CREAT | os.O_RDWR); os.rename('f', 'g')\n"
        "os.close(os.open('f', os.O_CREAT | os.O_RDWR)); os.write(fd, b'kept')\n"
        "gone = os.open('h', os.O_CREAT | os.O_RDWR); os.unlink('h'); os.write(gone, b'x')\n"
        "assert os.pread(gone, 1, 0) == b'x'\n",
    )
    assert (root / "g").read_bytes() == b"kept"
    assert (root / "f").read_bytes() == b""
    assert pages.total("forwarded_writes") == 1  # 'g', by its name of now


PATIENT_WRITER = (
    "import os\n"
    "fd = os.open('f', os.O_CREAT | os.O_RDWR); os.write(fd, b'x' * 1000)\n"
    "print('written', flush=True); input()\n"
    "for call in (os.fsync, os.fsync, os.close):\n"
    "    try: call(fd); print(0)\n"
    "    except OSError as error: print(error.errno)\n"
)


@pytest.fixture
def writer(agent: PageServer, remote: RealNode, root: Path) -> Iterator[subprocess.Popen[str]]:
    """A program that has written and goes on with fsync, fsync and close."""
    process = subprocess.Popen(
        [sys.executable, "-c", PATIENT_WRITER],
        cwd=root,
        env=os.environ | agent.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    yield process
    process.kill()
    process.communicate(timeout=HANG)


def test_what_a_lost_host_acknowledged_is_an_error_at_the_next_sync(
    writer: subprocess.Popen[str], remote: RealNode
) -> None:
    """Acknowledged means in that kernel; without it, nobody can say that the data is safe."""
    remote.process.send_signal(signal.SIGKILL)
    remote.process.wait(timeout=HANG)
    out, _ = writer.communicate("\n", timeout=HANG)
    assert out.split() == [str(errno.EIO), "0", "0"]


def test_another_node_of_the_same_host_can_answer_for_what_one_wrote(
    writer: subprocess.Popen[str], remote: RealNode, tmp_path: Path, root: Path, pages: SharedPages
) -> None:
    """The host's kernel has the data: an I/O node that is replaced costs no error."""
    options = ["--tcp", "127.0.0.1:0", "--token-file", str(tmp_path / "token")]
    with RealNode(tmp_path, 1, *options, "--root", str(root), "--coherent") as successor:
        pages.assign([successor.remote])
        remote.process.send_signal(signal.SIGTERM)
        remote.process.wait(timeout=HANG)
        out, _ = writer.communicate("\n", timeout=HANG)
        assert out.split() == ["0", "0", "0"]
        assert successor.measured().syncs == 1


def test_an_unreachable_host_costs_a_moment(run: Any, root: Path, pages: SharedPages) -> None:
    pages.assign([Node(number=0, id=5, address="127.0.0.1", transport="tcp", port=1)])
    run("dd", "if=/dev/zero", "of=f", "bs=1k", "count=3", "status=none")
    assert (root / "f").stat().st_size == 3072
    assert pages.total("failed_open") == 3
