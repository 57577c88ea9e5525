"""An I/O node has nothing that a client could borrow: no capability, no file, no descriptor."""

import errno
import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from limits import HANG
from live.conftest import folder, serve
from live.ionode.frames import Client, GoneError
from live.ionode.permissions import ASK, MESSAGE, Caller
from live.ionode.real_node import RealNode, Serve
from live.other_users import AS_ROOT, NOBODY, as_nobody, as_user

__all__ = ["folder", "serve"]
pytestmark = pytest.mark.security
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
LEASE = (
    "import fcntl, os, signal, sys\n"
    "signal.signal(signal.SIGIO, signal.SIG_IGN)\n"
    "held = os.open(sys.argv[1], os.O_RDWR)\n"
    "fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
    "print('held', flush=True)\n"
    "sys.stdin.read()\n"
)
"""A program that does not let go of a lease."""


def threads(node: RealNode) -> list[dict[str, str]]:
    tasks = Path(f"/proc/{node.process.pid}/task").glob("*/status")
    return [
        dict(line.split(":\t", 1) for line in status.read_text().splitlines()) for status in tasks
    ]


def open_to_all(node: RealNode) -> None:
    for path in (node.folder.parent, node.folder):
        path.chmod(0o755)
    node.socket.chmod(0o666)


@AS_ROOT
def test_a_node_of_all_users_is_nobody_and_can_do_nothing(serve: Serve) -> None:
    """None of its threads could open a file of anybody's, whatever its clients make it do."""
    node = serve("--all-users")
    open_to_all(node)

    def use() -> object:
        with Caller(node.socket) as caller:
            return caller.make(4096).bytes >= 4096

    assert as_nobody(use) == as_user(NOBODY - 1, use) == "True"
    assert len(threads(node)) > 1
    for thread in threads(node):
        assert {name: int(thread[name], 16) for name in SETS} == dict.fromkeys(SETS, 0)
        assert thread["Uid"].split() == thread["Gid"].split() == [str(NOBODY)] * 4
        assert thread["Groups"].split() == []
        assert thread["NoNewPrivs"] == "1"


@AS_ROOT
def test_a_node_that_carries_for_other_hosts_has_no_capability(serve: Serve, folder: Path) -> None:
    """It is the user who started it, and bound by permissions even if that is root."""
    node = serve(carries=folder)
    private = folder / "private"
    private.write_bytes(b"secret")
    os.chown(private, NOBODY, NOBODY)
    private.chmod(0o600)
    with Client(node.carrier) as client:
        assert client.open(private, os.O_RDONLY) == -errno.EACCES
    for thread in threads(node):
        assert {name: int(thread[name], 16) for name in SETS} == dict.fromkeys(SETS, 0)
        assert thread["NoNewPrivs"] == "1"


def test_a_descriptor_is_refused_and_closed(serve: Serve) -> None:
    """Whatever file a client passes, huge pages among them: pages are made by the I/O node."""
    node = serve()
    message = MESSAGE.pack(ASK, 0, 1, 1, 1, 0, 4096)
    with Caller(node.socket) as caller, Caller(node.socket) as bystander:
        assert node.measured().refused == 0
        before = node.descriptors()
        reading, writing = os.pipe()
        socket.send_fds(caller.socket, [message], [writing])
        os.close(writing)
        assert caller.has_hung_up
        with os.fdopen(reading) as pipe:
            assert select.select([pipe], [], [], HANG)[0], "the I/O node keeps the descriptor"
            assert pipe.read() == ""
        node.until(lambda now: now.refused == 1)
        node.until(lambda _: node.descriptors() == before - 1)  # that of the connection
        assert bystander.make(4096).bytes >= 4096


def test_a_page_is_of_memory_that_nobody_can_take_away(serve: Serve) -> None:
    """Cut, or of huge pages that were punched out, it would end the I/O node at its next answer."""
    node = serve()
    with Caller(node.socket) as caller:
        with open(caller.page_descriptor, "r+b", closefd=False, buffering=0) as page:
            for size in (0, 1 << 30):
                with pytest.raises(PermissionError):
                    page.truncate(size)
            seals = fcntl.fcntl(page, fcntl.F_GET_SEALS)
            assert seals & fcntl.F_SEAL_SEAL
            assert os.fstatvfs(page.fileno()).f_bsize == os.sysconf("SC_PAGESIZE")
            everything = os.fstat(page.fileno()).st_size
            subprocess.run(
                ["fallocate", "-p", "-l", str(everything), f"/proc/self/fd/{page.fileno()}"],
                pass_fds=[page.fileno()],
                check=True,
            )
        assert caller.make(4096).bytes >= 4096


@pytest.fixture
def leased(folder: Path) -> Iterator[Path]:
    """A file whose lease another process holds, and does not let go."""
    path = folder / "leased"
    path.write_bytes(b"")
    with subprocess.Popen(
        [sys.executable, "-c", LEASE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield path
        holder.send_signal(signal.SIGKILL)


def test_no_open_waits_for_a_lease(serve: Serve, leased: Path) -> None:
    """Else as many of them as the I/O node serves at once would stop it for 45 s."""
    node = serve("--depth", "1", carries=leased.parent)
    with Client(node.carrier) as client:
        assert client.open(leased) == -errno.EAGAIN


def test_no_greeting_is_too_long_or_too_short(serve: Serve) -> None:
    node = serve()
    for greeting in (b"", b"x", bytes(71), bytes(73), struct.pack("<II64s", 0, 0, b"job")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(HANG)
            client.connect(str(node.socket))
            if greeting:
                client.send(greeting)
            else:
                client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
    with pytest.raises(GoneError):
        Caller(node.socket, magic=7)
    with Caller(node.socket) as caller:
        assert caller.make(1).bytes >= 1
