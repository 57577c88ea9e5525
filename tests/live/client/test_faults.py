"""Real storage faults: a forwarded program sees what it would see without Penstock."""

import fcntl
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from limits import HANG
from live.ionode.real_node import BECOME, RealNode
from live.storage.real_storage import loop_device, need, need_root, remount, small_memory

from penstock.live.agent.page_server import PageServer
from penstock.live.protocol.shared_page import SharedPages

MIB = 1 << 20
NOBODY = 65534
WAIT = HANG
PROLOGUE = f"""{BECOME}
import errno, fcntl, hashlib, os, resource, signal, sys
def outcome(call):
    try: return call()
    except OSError as error: return errno.errorcode[error.errno]
def where(fd): return os.lseek(fd, 0, os.SEEK_CUR), os.fstat(fd).st_size
def fill(fd):
    while True:
        written = outcome(lambda: os.write(fd, b"x" * 100_000))
        print(written, *where(fd))
        if isinstance(written, str): return
"""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A job of a user, and its I/O node."""

    root: Path
    pages: SharedPages
    agent: PageServer
    node: RealNode
    user: int

    def begin(self, program: str, *, forwarded: bool = True) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-S", "-c", PROLOGUE + f"become({self.user})\n" + program],
            cwd=self.root,
            env=os.environ | (self.agent.environment() if forwarded else {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, program: str, *, forwarded: bool = True, status: int = 0) -> str:
        with self.begin(program, forwarded=forwarded) as process:
            try:
                output, _ = process.communicate(timeout=WAIT)
            finally:
                process.kill()
        assert process.returncode == status, output
        return output

    def clear(self) -> None:
        for entry in self.root.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def run_both_ways(self, program: str, *, status: int = 0) -> list[str]:
        """Run a program natively and forwarded, each in a clean directory; compare the outputs."""
        self.clear()
        native = self.run(program, forwarded=False, status=status)
        self.clear()
        assert self.run(program, status=status) == native
        assert self.pages.total("forwarded_writes") > 0
        return native.splitlines()


@contextmanager
def layer(
    folder: Path, root: Path, *options: str, user: int = 0, served_by: int | None = None
) -> Iterator[Layer]:
    """Serve a user's job on a directory."""
    root.chmod(0o777)
    with ExitStack() as stack:
        sockets = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        sockets.chmod(0o777)
        node = stack.enter_context(
            RealNode(sockets, 0, *options, user=user if served_by is None else served_by)
        )
        if "--all-users" in options:
            Path(node.node.address).chmod(0o666)
        pages = stack.enter_context(SharedPages([root], patience=5.0))
        pages.assign([node.node])
        agent = stack.enter_context(PageServer(pages, sockets / "agent"))
        os.chown(agent.path, user, user)
        yield Layer(root=root, pages=pages, agent=agent, node=node, user=user)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory in memory that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="faults", dir="/dev/shm") as path:
        Path(path).chmod(0o755)
        (Path(path) / "managed").mkdir()
        yield Path(path)


@pytest.fixture
def own_job(folder: Path) -> Iterator[Layer]:
    with layer(folder, folder / "managed") as own_job:
        yield own_job


@pytest.fixture
def users_job(folder: Path) -> Iterator[Layer]:
    """A job and an I/O node of a user without privileges."""
    need_root()
    with layer(folder, folder / "managed", user=NOBODY) as users_job:
        yield users_job


@pytest.fixture
def users_job_at_roots_node(folder: Path) -> Iterator[Layer]:
    """A job of a user without privileges at root's I/O node."""
    need_root()
    with layer(folder, folder / "managed", "--all-users", user=NOBODY, served_by=0) as users_job:
        yield users_job


FULL = """
blocker, fd = (os.open(name, os.O_CREAT | os.O_RDWR) for name in ("blocker", "f"))
os.write(blocker, b"b" * 300_000)
fill(fd)
print(outcome(lambda: os.pwrite(fd, b"y" * 10, 50_000_000)), *where(fd))
os.unlink("blocker"); os.close(blocker)
print(os.write(fd, b"z" * 100_000), *where(fd))
os.fsync(fd)
os.lseek(fd, 0, os.SEEK_SET)
print(hashlib.sha256(b"".join(iter(lambda: os.read(fd, 65536), b""))).hexdigest())
os.close(fd)
"""
"""Continues once a removed file has left enough space."""


def test_a_full_file_system_is_full_at_the_same_byte(folder: Path) -> None:
    need_root()
    with small_memory(folder, size=MIB) as root, layer(folder, root) as job:
        output = job.run_both_ways(FULL)
        pages = MIB // 4096 - 74  # without the blocker's
        assert f"{pages * 4096 % 100_000} {pages * 4096} {pages * 4096}" in output, "a short write"
        assert f"ENOSPC {pages * 4096} {pages * 4096}" in output
        assert f"100000 {pages * 4096 + 100_000} {pages * 4096 + 100_000}" in output
        assert job.pages.total("failed_open") == 0
        assert job.node.measured().files == 0, "it gave the blocker's space back, too"


@pytest.mark.parametrize("first", ["os.write(fd, b'before ')", "os.lseek(fd, 7, 0)"])
def test_a_directory_may_be_removed_under_an_open_file(own_job: Layer, first: str) -> None:
    """The I/O node opens a file when it is first written to; it may have no name by then."""
    output = own_job.run_both_ways(
        "os.mkdir('d'); fd = os.open('d/f', os.O_CREAT | os.O_RDWR)\n"
        f"{first}\n"
        "os.unlink('d/f'); os.rmdir('d')\n"
        "print(os.write(fd, b'after'), *where(fd), os.fstat(fd).st_nlink)\n"
        "print(os.pread(fd, 100, 0)[7:], os.fsync(fd), os.close(fd))\n"
    )
    assert output == ["5 12 12 0", "b'after' None None"]
    assert own_job.pages.total("failed_open") == 0
    assert own_job.node.measured().files == 0


@pytest.fixture
def job(request: pytest.FixtureRequest) -> Layer:
    """The layer that a test names: served by an I/O node of its user, or by one for all users."""
    layer: Layer = request.getfixturevalue(request.param)
    return layer


@pytest.mark.security
@pytest.mark.parametrize("opened", [True, False], ids=["opened", "not-yet-opened"])
@pytest.mark.parametrize("job", ["users_job", "users_job_at_roots_node"], indirect=True)
def test_a_revoked_permission_is_for_the_next_open(job: Layer, opened: bool) -> None:
    """An open file stays open, whether or not it was used before."""
    output = job.run_both_ways(
        "os.close(os.open('other', os.O_CREAT | os.O_WRONLY))\n"
        "with open('other', 'wb', buffering=0) as other: other.write(b'forwarded')\n"
        "fd = os.open('f', os.O_CREAT | os.O_RDWR, 0o600)\n"
        f"os.write(fd, b'before ' * {int(opened)}); os.chmod('f', 0)\n"
        "print(os.write(fd, b'after'), *where(fd), os.pread(fd, 100, 0), os.fsync(fd))\n"
        "for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):\n"
        "    print(outcome(lambda: os.open('f', flags)))\n"
    )
    expected = "5 12 12 b'before after' None" if opened else "5 5 5 b'after' None"
    assert output == [expected, "EACCES", "EACCES", "EACCES"]
    assert job.pages.total("failed_open") == 0


@pytest.mark.parametrize("job", ["users_job", "users_job_at_roots_node"], indirect=True)
def test_a_file_created_read_only_is_forwarded(job: Layer) -> None:
    """Only the descriptor that created it may write, and it is the one that does."""
    output = job.run(
        "fd = os.open('f', os.O_CREAT | os.O_RDWR, 0o444)\n"
        "for k in range(5): os.write(fd, b'%d' % k)\n"
        "print(os.pread(fd, 100, 0), *where(fd))\n"
    )
    assert output == "b'01234' 5 5\n"
    assert job.pages.total("forwarded_writes") == job.pages.total("writes") == 5
    assert job.pages.total("failed_open") == 0


@pytest.mark.parametrize("job", ["users_job", "users_job_at_roots_node", "own_job"], indirect=True)
def test_a_write_clears_the_set_id_bits(job: Layer) -> None:
    """Root's I/O node could keep them; a user's write must not."""
    output = job.run_both_ways(
        "fd = os.open('f', os.O_CREAT | os.O_RDWR); os.fchmod(fd, 0o6755)\n"
        "os.write(fd, b'x'); print(oct(os.fstat(fd).st_mode & 0o7777))\n"
    )
    assert output == ["0o6755" if job.user == 0 else "0o755"]
    assert job.pages.total("failed_open") == 0


def limited(action: str, limit: int) -> str:
    """Return the beginning of a program whose files are limited to `limit` bytes."""
    return (
        f"signal.signal(signal.SIGXFSZ, signal.{action})\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        f"fd = os.open('f', os.O_CREAT | os.O_RDWR); os.lseek(fd, {limit - 150_000}, 0)\n"
    )


@pytest.mark.parametrize("limit", [8_000_000, 250_000], ids=["large", "small"])
def test_a_file_size_limit_is_the_programs_own(own_job: Layer, limit: int) -> None:
    program = limited("SIG_IGN", limit) + (
        "fill(fd)\nprint(outcome(lambda: os.pwrite(fd, b'x', 9_000_000)), os.pwrite(fd, b'x', 0))\n"
    )
    output = own_job.run(program)
    own_job.clear()
    assert output == own_job.run(program, forwarded=False)
    assert output.splitlines() == [
        f"100000 {limit - 50_000} {limit - 50_000}",
        f"50000 {limit} {limit}",
        f"EFBIG {limit} {limit}",
        "EFBIG 1",
    ]
    assert own_job.pages.total("forwarded_writes") == 3
    assert own_job.pages.total("failed_open") == 0


@pytest.mark.parametrize("limit", [8_000_000, 250_000])
def test_a_program_beyond_its_limit_gets_the_signal(own_job: Layer, limit: int) -> None:
    program = limited("SIG_DFL", limit)
    program += "while True: print(os.write(fd, b'x' * 100_000), flush=True)\n"
    output = own_job.run(program, status=-signal.SIGXFSZ)
    assert (
        output == own_job.run(program, forwarded=False, status=-signal.SIGXFSZ) == "100000\n50000\n"
    )


def test_a_file_system_that_shuts_down_fails_its_programs(folder: Path) -> None:
    """As with a lost device: the error reaches the program, and nothing hangs."""
    need_root()
    need("mkfs.ext4")
    output = []
    for forwarded in (False, True):
        place = folder / f"forwarded-{forwarded}"
        place.mkdir()
        with loop_device(place, size=32 * MIB) as (root, _), layer(place, root) as job:
            program = job.begin(
                "fd = os.open('f', os.O_CREAT | os.O_RDWR); print(os.write(fd, b'x' * 100_000))\n"
                "sys.stdout.flush(); input()\n"
                "print(outcome(lambda: os.write(fd, b'y' * 100_000)), os.lseek(fd, 0, 1))\n"
                "print(outcome(lambda: os.fsync(fd)), outcome(lambda: os.close(fd)))\n",
                forwarded=forwarded,
            )
            with program:
                assert program.stdout is not None
                assert program.stdout.readline() == "100000\n"
                shut_down(root)
                output.append(program.communicate("\n", timeout=WAIT)[0])
            assert job.pages.total("forwarded_writes") == int(forwarded), "only one was done"
            assert job.pages.total("failed_open") == 0
    assert output[0] == output[1] == "EIO 100000\nEIO None\n"


def shut_down(mount: Path) -> None:
    """Make an ext4 file system fail every access from now on (EXT4_IOC_SHUTDOWN)."""
    directory = os.open(mount, os.O_RDONLY)
    fcntl.ioctl(directory, 0x8004587D, struct.pack("I", 2))
    os.close(directory)


def test_a_closed_file_does_not_keep_a_file_system_writable(folder: Path) -> None:
    """An I/O node that still held it open would make remounting fail."""
    need_root()
    need("mkfs.ext4")
    with loop_device(folder, size=32 * MIB) as (root, _), layer(folder, root) as job:
        program = job.begin(
            "with open('f', 'wb', buffering=0) as file: file.write(b'x' * 100_000)\n"
            "fd = os.open('f', os.O_RDONLY); os.read(fd, 10)\n"
            "print('closed', flush=True); input()\n"
            "print(len(os.read(fd, 200_000)), outcome(lambda: os.write(fd, b'x')))\n"
            "print(outcome(lambda: os.open('f', os.O_RDWR)))\n"
            "print(outcome(lambda: os.open('g', os.O_CREAT | os.O_RDWR)))\n"
        )
        with program:
            assert program.stdout is not None
            assert program.stdout.readline() == "closed\n"
            remount(root, "ro")
            output, _ = program.communicate("\n", timeout=WAIT)
        assert output == "99990 EBADF\nEROFS\nEROFS\n"
        assert job.pages.total("forwarded_read_bytes") == 100_000
