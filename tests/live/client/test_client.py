"""Unmodified programs under the client library: byte-exact, counted, and never held for long."""

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from limits import HANG, within

from penstock.live.agent.page_server import PageServer, library
from penstock.live.protocol import shared_page
from penstock.live.protocol._page_layout import (
    BY_NODE,
    DIRECTORY_ENTRY_BYTES,
    FIRST_DIRECTORY,
    FIRST_SLOT,
    MOVED,
    NODE_BYTES,
    OTHER_GATES,
    SLOT_FIELDS,
)
from penstock.live.protocol.shared_page import SharedPages

MIB = 1 << 20


def test_what_dd_writes_and_reads_is_counted(run: Any, root: Path, pages: SharedPages) -> None:
    run("dd", "if=/dev/urandom", "of=one", "bs=64k", "count=32")
    run("dd", "if=one", "of=two", "bs=256k")
    assert (root / "one").read_bytes() == (root / "two").read_bytes()
    assert pages.total("write_bytes") == 4 * MIB
    assert pages.total("read_bytes") == 2 * MIB
    assert len({thread.pid for thread in pages.threads()}) == 2


def test_files_elsewhere_are_none_of_our_business(
    run: Any, tmp_path: Path, pages: SharedPages
) -> None:
    run("dd", "if=/dev/zero", f"of={tmp_path}/elsewhere", "bs=1M", "count=2")
    assert pages.total("write_bytes") == 0


def test_redirections_of_a_shell_are_learned_across_exec(
    run: Any, root: Path, pages: SharedPages
) -> None:
    run("bash", "-c", "dd if=/dev/zero bs=1k count=10 > file 2> /dev/null")
    assert (root / "file").stat().st_size == 10240
    assert pages.total("write_bytes") == 10240


def test_python_with_fork_threads_and_subprocess(run: Any, root: Path, pages: SharedPages) -> None:
    program = """
import os, subprocess, threading
def write(name):
    with open(name, "wb", buffering=0) as file:
        for _ in range(16): file.write(b"x" * 65536)
threads = [threading.Thread(target=write, args=(f"t{k}",)) for k in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
if os.fork() == 0:
    write("child"); os._exit(0)
os.wait()
file = os.open("kept", os.O_WRONLY | os.O_CREAT)
subprocess.run(["true"], close_fds=True, check=True)
os.write(file, b"y" * 1000)
"""
    run(sys.executable, "-c", program)
    assert all((root / name).stat().st_size == MIB for name in ("t0", "t1", "t2", "t3", "child"))
    assert pages.total("write_bytes") == 5 * MIB + 1000


@pytest.mark.parametrize("way", ["dup2", "fcntl"])
def test_copies_of_descriptors_are_followed(run: Any, pages: SharedPages, way: str) -> None:
    copy = {"dup2": "os.dup2(fd, 50)", "fcntl": "fcntl.fcntl(fd, fcntl.F_DUPFD, 50)"}[way]
    run(
        sys.executable,
        "-c",
        f"import os, fcntl; fd = os.open('f', os.O_CREAT | os.O_RDWR); {copy}; os.close(fd);"
        "os.write(50, b'z' * 777); os.pwrite(50, b'a' * 23, 0);"
        "assert os.pread(50, 30, 0) == b'a' * 23 + b'z' * 7",
    )
    assert pages.total("write_bytes") == 800
    assert pages.total("read_bytes") == 30


def test_errors_are_those_of_the_kernel(run: Any, root: Path) -> None:
    result = run(
        sys.executable,
        "-c",
        "import os\n"
        "fd = os.open('f', os.O_CREAT | os.O_RDONLY)\n"
        "try: os.write(fd, b'x')\n"
        "except OSError as e: print(e.errno)\n"
        "os.close(fd)\n"
        "try: os.read(fd, 1)\n"
        "except OSError as e: print(e.errno)\n",
    )
    assert result.stdout.split() == 2 * [str(errno.EBADF)]


def test_a_closed_gate_holds_large_calls_and_opens_by_itself(
    run: Any, root: Path, pages: SharedPages
) -> None:
    pages.close_gate(0.7)
    began = time.monotonic()
    run("dd", "if=/dev/zero", "of=small", "bs=1k", "count=10")
    assert pages.total("waits") == 0
    run("dd", "if=/dev/zero", "of=large", "bs=1M", "count=1")
    assert time.monotonic() - began >= 0.7
    assert pages.total("waits") == 1
    assert pages.total("waited") > 0


def test_an_opened_gate_lets_waiters_go_at_once(run: Any, pages: SharedPages) -> None:
    pages.close_gate(60.0)
    opening = threading.Timer(0.3, pages.open_gate)
    opening.start()
    began = time.monotonic()
    run("dd", "if=/dev/zero", "of=large", "bs=1M", "count=1")
    assert time.monotonic() - began < within(4.0)
    opening.join()  # it has the pages in its hands until then
    assert pages.total("gave_up") == 0


def test_no_wait_is_longer_than_allowed(tmp_path: Path, root: Path) -> None:
    with (
        SharedPages([root], longest_wait=0.2) as pages,
        PageServer(pages, tmp_path / "a.sock") as agent,
    ):
        pages.close_gate(60.0)
        command = ["dd", "if=/dev/zero", f"of={root}/f", "bs=1M", "count=1"]
        subprocess.run(command, env=os.environ | agent.environment(), timeout=HANG, check=True)
        assert pages.total("gave_up") == 1


def test_who_holds_a_lock_never_waits(run: Any, pages: SharedPages) -> None:
    pages.close_gate(60.0)
    program = (
        "import fcntl, os; fd = os.open('f', os.O_CREAT | os.O_RDWR);"
        "fcntl.lockf(fd, fcntl.LOCK_EX);"
        "os.write(fd, b'x' * (1 << 20))"
    )
    began = time.monotonic()
    run(sys.executable, "-c", program)
    assert time.monotonic() - began < within(4.0)
    assert pages.total("waits") == 0


def test_switched_off_it_passes_through(run: Any, root: Path, pages: SharedPages) -> None:
    pages.close_gate(60.0)
    run("dd", "if=/dev/zero", "of=f", "bs=1M", "count=1", PENSTOCK_DISABLE="1")
    assert (root / "f").stat().st_size == MIB
    assert list(pages.threads()) == []


def test_without_an_agent_it_passes_through(root: Path) -> None:
    environment = os.environ | {"LD_PRELOAD": str(library()), "PENSTOCK_AGENT": "/nowhere/agent"}
    command = ["dd", "if=/dev/zero", f"of={root}/f", "bs=1M", "count=1"]
    subprocess.run(command, env=environment, timeout=HANG, check=True)
    assert (root / "f").stat().st_size == MIB


def test_a_job_cannot_write_to_its_control_page(run: Any, agent: PageServer) -> None:
    program = """
import mmap, os, socket, struct
s = socket.socket(socket.AF_UNIX); s.connect(os.environ["PENSTOCK_AGENT"])
s.sendall(struct.pack("<8sII", b"PNSTCTRL", VERSION, os.getpid()))
_, fds, _, _ = socket.recv_fds(s, 16, 2)
try: mmap.mmap(fds[0], 4096)
except PermissionError: print("not mapped")
try: os.pwrite(fds[0], b"x", 0)
except PermissionError: print("not written")
"""
    program = program.replace("VERSION", str(shared_page.VERSION))
    assert run(sys.executable, "-c", program).stdout == "not mapped\nnot written\n"


def test_it_needs_no_symbol_newer_than_glibc_2_17() -> None:
    """A symbol that an older system does not have is fatal to every program there."""
    table = subprocess.run(["objdump", "-T", library()], capture_output=True, text=True, check=True)
    versions = {
        word[6:]
        for word in table.stdout.replace("(", " ").replace(")", " ").split()
        if word.startswith("GLIBC_")
    }
    assert versions
    assert max(tuple(map(int, version.split("."))) for version in versions) <= (2, 17)


def test_it_needs_nothing_but_the_c_library() -> None:
    table = subprocess.run(["objdump", "-p", library()], capture_output=True, text=True, check=True)
    needed = {line.split()[1] for line in table.stdout.splitlines() if "NEEDED" in line}
    assert needed <= {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}


def test_the_layout_is_the_documented_one() -> None:
    assert (shared_page.CONTROL_BYTES, shared_page.COUNTERS_BYTES) == (16672, 353_472)
    text = (Path(__file__).parents[3] / "docs/internals/shared-page.md").read_text()
    assert "16,672 bytes" in text
    assert "353,472 bytes" in text
    assert f"{NODE_BYTES:,} + 8 k" in text
    assert f"{OTHER_GATES:,} + 16 k" in text
    assert f"{MOVED:,} + 64 k" in text
    assert f"{BY_NODE:,} + 64 k" in text
    assert f"{FIRST_DIRECTORY:,} + {DIRECTORY_ENTRY_BYTES} k" in text
    assert 8 * len(shared_page.SlotCounters.__dataclass_fields__) <= shared_page.SLOT_BYTES


WRITE_HERE_AND_THERE = """
import os, sys
for path in sys.argv[1:]:
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.write(file, b"data")
"""


def test_files_written_elsewhere_are_counted_with_their_first_directories(
    run: Any, pages: SharedPages, tmp_path: Path
) -> None:
    """Reads, redirected output, memory and the kernel's files are not storage that was missed."""
    folders = [tmp_path / f"folder{k}" for k in range(6)]
    for folder in folders:
        folder.mkdir()
    paths = [str(folder / name) for folder in folders for name in "ab"]
    noise = ["/dev/shm/penstock-test", "/proc/self/comm"]
    try:
        run(sys.executable, "-B", "-c", WRITE_HERE_AND_THERE, *paths, *noise)
    finally:
        Path(noise[0]).unlink(missing_ok=True)
    assert pages.total("opens_elsewhere") == len(paths)
    assert pages.directories_elsewhere() == [str(folder) for folder in folders[:4]]
    assert (pages.total("opens"), pages.moved_bytes()) == (0, 0)


def test_a_counters_page_of_an_older_agent_is_used_as_far_as_it_goes(
    run: Any, pages: SharedPages, tmp_path: Path
) -> None:
    own, older = pages.counters_fd, os.memfd_create("older")
    os.ftruncate(older, NODE_BYTES)
    os.pwrite(older, os.pread(own, FIRST_SLOT, 0), 0)
    pages.counters_fd = older
    try:
        run(sys.executable, "-B", "-c", WRITE_HERE_AND_THERE, "here", str(tmp_path / "there"))
    finally:
        pages.counters_fd = own
    offsets = (FIRST_SLOT + SLOT_FIELDS[name] for name in ("write_bytes", "opens_elsewhere"))
    counted = [int.from_bytes(os.pread(older, 8, at), "little") for at in offsets]
    os.close(older)
    assert counted == [4, 1]
