"""I/O nodes that carry data and stall, fail, hang up or die: results never change."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from limits import HANG
from live.client.misbehaving_node import OddNode
from live.ionode.frames import CLOSE, FSYNC, OPEN, READ, TOKEN, WRITE

from penstock.live.agent.page_server import PageServer
from penstock.live.protocol.shared_page import SharedPages

BLOCK = 4096
PATIENCE = 1.0

PROLOGUE = """
import ctypes, errno, fcntl, mmap, os, resource, signal, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def fails(call):
    try: call()
    except OSError as error: return error.errno
    return 0
"""


@pytest.fixture
def pages(root: Path) -> Iterator[SharedPages]:
    with SharedPages([root], longest_wait=5.0, patience=PATIENCE, token=TOKEN) as pages:
        yield pages


@pytest.fixture
def node(root: Path, pages: SharedPages) -> Iterator[OddNode]:
    with OddNode(root) as node:
        pages.assign([node.node])
        yield node


@pytest.fixture
def python(run: Any) -> Callable[[str], str]:
    """Run a program under the library; return what it prints."""

    def python(program: str) -> str:
        output: str = run(sys.executable, "-c", PROLOGUE + program).stdout
        return output

    return python


@pytest.fixture
def begin(agent: PageServer, root: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Start a program under the library, to be spoken with while it runs."""
    running: list[subprocess.Popen[str]] = []

    def begin(program: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", PROLOGUE + program],
            cwd=root,
            env=os.environ | agent.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate(timeout=HANG)


def stall_writes(node: OddNode) -> threading.Event:
    """Let the I/O node take writes and never answer; the event tells that it took one."""
    stalled = threading.Event()

    def stall(operation: int, offset: int, count: int) -> None:
        if operation == WRITE:
            stalled.set()
            threading.Event().wait(3 * HANG)

    node.before = stall
    return stalled


def test_data_goes_through_the_node_and_nothing_else_does(
    python: Any, node: OddNode, root: Path, pages: SharedPages
) -> None:
    python(
        "fd = os.open('f', os.O_CREAT | os.O_RDWR)\n"
        "os.write(fd, b'a' * 1000); os.pwrite(fd, b'b' * 10, 500)\n"
        "os.writev(fd, [b'c', b'd' * 9])\n"
        "os.lseek(fd, 498, 0); assert os.read(fd, 14) == b'aa' + b'b' * 10 + b'aa'\n"
        "os.fsync(fd); assert os.fstat(fd).st_size == 1010; os.ftruncate(fd, 600); os.close(fd)\n"
    )
    assert (root / "f").read_bytes() == b"a" * 500 + b"b" * 10 + b"a" * 90
    assert pages.total("forwarded_write_bytes") == pages.total("write_bytes") == 1020
    assert pages.total("forwarded_read_bytes") == 14
    assert [node.count(kind) for kind in (OPEN, WRITE, READ, FSYNC, CLOSE)] == [1, 3, 1, 1, 1]


def test_positions_are_shared_with_copies_and_children(python: Any, node: OddNode) -> None:
    python(
        "fd = os.open('f', os.O_CREAT | os.O_RDWR); copy = os.dup(fd)\n"
        "os.write(fd, b'one '); os.write(copy, b'two ')\n"
        "if os.fork() == 0: os.write(fd, b'three '); os._exit(0)\n"
        "os.wait(); os.write(copy, b'four'); os.lseek(fd, 0, 0)\n"
        "assert os.read(copy, 100) == b'one two three four'; assert os.read(fd, 5) == b''\n"
        "assert os.lseek(fd, 0, 1) == 18\n"
    )


def test_appending_writes_are_never_overtaken(python: Any, node: OddNode, root: Path) -> None:
    python(
        "fd = os.open('f', os.O_CREAT | os.O_WRONLY | os.O_APPEND)\n"
        "other = os.open('f', os.O_WRONLY)\n"
        "os.pwrite(other, b'x' * 100, 0); os.write(fd, b'end')\n"
        "late = os.open('f', os.O_WRONLY); fcntl.fcntl(late, fcntl.F_SETFL, os.O_APPEND)\n"
        "os.write(late, b'!')\n"
        "if os.fork() == 0: fcntl.fcntl(other, fcntl.F_SETFL, os.O_APPEND); os._exit(0)\n"
        "os.wait(); os.write(other, b'?')\n"
    )
    assert (root / "f").read_bytes() == b"x" * 100 + b"end!?"


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_errors_of_the_node_are_those_of_the_call(
    python: Any, node: OddNode, root: Path, error: int
) -> None:
    node.before = lambda operation, offset, count: -error if operation == WRITE and offset else None
    out = python(
        "fd = os.open('f', os.O_CREAT | os.O_RDWR); assert os.write(fd, b'x' * 100) == 100\n"
        "print(fails(lambda: os.write(fd, b'y' * 50))); print(os.lseek(fd, 0, 1))\n"
    )
    assert out.split() == [str(error), "100"]
    assert (root / "f").read_bytes() == b"x" * 100


def test_a_short_write_leaves_the_position_where_it_ended(python: Any, node: OddNode) -> None:
    node.before = lambda operation, offset, count: 30 if operation == WRITE else None
    out = python(
        "fd = os.open('f', os.O_CREAT | os.O_RDWR)\n"
        "print(os.write(fd, b'x' * 100), os.lseek(fd, 0, 1), os.fstat(fd).st_size)\n"
    )
    assert out.split() == ["30", "30", "30"]


@pytest.mark.parametrize(("operation", "call"), [(FSYNC, "os.fsync(fd)"), (CLOSE, "os.close(fd)")])
def test_a_late_error_of_an_acknowledged_write_is_reported(
    python: Any, node: OddNode, operation: int, call: str
) -> None:
    node.before = lambda requested, offset, count: -errno.EIO if requested == operation else None
    out = python(
        "fd = os.open('f', os.O_CREAT | os.O_RDWR); os.write(fd, b'x')\n"
        f"print(fails(lambda: {call}))\n"
    )
    assert out.split() == [str(errno.EIO)]


def test_a_file_that_the_node_cannot_open_is_direct(
    python: Any, node: OddNode, root: Path, pages: SharedPages
) -> None:
    node.before = lambda operation, offset, count: -errno.EACCES if operation == OPEN else None
    python("fd = os.open('f', os.O_CREAT | os.O_RDWR); [os.write(fd, b'x') for _ in range(9)]\n")
    assert (root / "f").read_bytes() == b"x" * 9
    assert node.count(OPEN) == 1
    assert pages.total("failed_open") == 1


def test_a_dead_node_costs_nothing_but_its_help(
    begin: Any, node: OddNode, root: Path, pages: SharedPages
) -> None:
    """Nobody of its host is left to sync what it wrote: the first fsync says so, once."""
    process = begin(
        "fd = os.open('f', os.O_CREAT | os.O_RDWR)\n"
        "for k in range(200):\n"
        "    assert os.write(fd, b'%4d' % k) == 4\n"
        "    if k == 99: print('half', flush=True); input()\n"
        "assert fails(lambda: os.fsync(fd)) == errno.EIO\n"
        "os.fsync(fd); os.close(fd)\n"
    )
    assert process.stdout.readline() == "half\n"
    node.die()
    process.communicate("go on\n", timeout=HANG)
    assert process.returncode == 0
    assert (root / "f").read_bytes() == b"".join(b"%4d" % k for k in range(200))
    assert pages.total("forwarded_writes") == 100
    assert pages.total("failed_open") == 100


def test_a_stalled_write_waits_and_so_does_what_overlaps_it(
    begin: Any, node: OddNode, root: Path, pages: SharedPages
) -> None:
    """Sent again elsewhere, it could overwrite newer data when the node wakes up."""
    wake = threading.Event()

    def stall(operation: int, offset: int, count: int) -> None:
        if operation == WRITE and offset == 0 and not wake.wait(HANG):
            raise TimeoutError

    node.before = stall
    process = begin(
        "fd = os.open('f', os.O_CREAT | os.O_RDWR)\n"
        "def old(): os.pwrite(fd, b'old!', 0); print('first', flush=True)\n"
        "first = threading.Thread(target=old); first.start(); input()\n"
        "os.pwrite(fd, b'elsewhere', 100); print('elsewhere', flush=True)\n"
        "os.pwrite(fd, b'new', 0); print('second', flush=True); first.join()\n"
    )
    deadline = time.monotonic() + HANG
    while node.count(WRITE) == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(PATIENCE + 0.2)
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "elsewhere\n"
    assert os.pread(os.open(root / "f", os.O_RDONLY), 4, 0) == bytes(4)
    wake.set()
    out, _ = process.communicate(timeout=HANG)
    assert sorted(out.split()) == ["first", "second"]
    assert (root / "f").read_bytes()[:4] == b"new!"
    assert pages.total("failed_open") >= 1


def test_a_stalled_write_is_done_directly_once_its_node_is_gone(
    begin: Any, node: OddNode, root: Path
) -> None:
    stalled = stall_writes(node)
    process = begin("fd = os.open('f', os.O_CREAT | os.O_RDWR); os.write(fd, b'data')")
    assert stalled.wait(HANG)
    with pytest.raises(subprocess.TimeoutExpired):
        process.communicate(timeout=4 * PATIENCE)
    node.die()
    process.communicate(timeout=HANG)
    assert process.returncode == 0
    assert (root / "f").read_bytes() == b"data"


def test_a_stalled_read_is_done_directly(begin: Any, node: OddNode, root: Path) -> None:
    (root / "f").write_bytes(b"data")
    node.before = lambda operation, *_: (
        threading.Event().wait(3 * HANG) and None if operation == READ else None
    )
    process = begin("print(os.read(os.open('f', os.O_RDONLY), 10))")
    assert process.communicate(timeout=HANG)[0] == "b'data'\n"


def test_descriptors_of_the_library_survive_programs_that_close_everything(
    python: Any, node: OddNode, pages: SharedPages
) -> None:
    python(
        "fd = os.open('f', os.O_CREAT | os.O_RDWR); os.write(fd, b'a'); last = fd + 1\n"
        "os.closerange(last, 70000); libc.close_range(last, 0xffffffff, 0); libc.closefrom(last)\n"
        "os.write(fd, b'b'); ours = [int(n) for n in os.listdir('/proc/self/fd') if int(n) > 700]\n"
        "assert ours and all(fails(lambda: os.close(n)) == errno.EBADF for n in ours)\n"
        "[os.dup2(fd, n) for n in ours]; os.write(fd, b'c')\n"
        "assert all(os.pread(n, 3, 0) == b'abc' for n in ours)\n"
    )
    assert pages.total("failed_open") == 0
    assert pages.total("forwarded_writes") == 3


def test_the_kernel_judges_what_only_it_can_judge(python: Any, node: OddNode) -> None:
    out = python(
        "fd = os.open('f', os.O_CREAT | os.O_RDWR); os.write(fd, b'x' * 100)\n"
        "bad = ctypes.c_void_p(8), ctypes.c_size_t(10), ctypes.c_long(0)\n"
        "print(libc.pwrite(fd, *bad), ctypes.get_errno(), end=' ')\n"
        "libc.mmap.restype = ctypes.c_void_p\n"
        "none = libc.mmap(None, ctypes.c_size_t(8192), 0, 0x22, -1, ctypes.c_long(0))\n"
        "print(libc.pwrite(fd, ctypes.c_void_p(none + 4000), ctypes.c_size_t(200), "
        "ctypes.c_long(0)), ctypes.get_errno(), end=' ')\n"
        "print(fails(lambda: os.pwrite(fd, b'x', -5)), end=' ')\n"
        "print(fails(lambda: os.read(os.open('f', os.O_WRONLY), 5)), end=' ')\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (150, 150))\n"
        "print(os.write(fd, b'y' * 100), fails(lambda: os.write(fd, b'z')))\n"
    )
    expected = [-1, errno.EFAULT, -1, errno.EFAULT, errno.EINVAL, errno.EBADF, 50, errno.EFBIG]
    assert out.split() == [str(number) for number in expected]


def test_direct_transfers_keep_their_rules(
    run: Any, tmp_path: Path, root: Path, pages: SharedPages
) -> None:
    """Aligned calls are forwarded; others are judged by the kernel."""
    with OddNode(root) as node:
        pages.assign([node.node])
        out = run(
            sys.executable,
            "-c",
            PROLOGUE + "data = mmap.mmap(-1, 8192); data[:] = b'd' * 8192\n"
            "fd = os.open('f', os.O_CREAT | os.O_RDWR | os.O_DIRECT)\n"
            "print(os.pwrite(fd, data, 0), end=' ')\n"
            "print(fails(lambda: os.pwrite(fd, memoryview(data)[:100], 8192)))\n",
        ).stdout
    plain = os.open(tmp_path / "plain", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
    try:
        os.pwrite(plain, b"x" * 100, 0)
        kernel = 0
    except OSError as error:
        kernel = error.errno or 0
    assert out.split() == ["8192", str(kernel)]
    assert pages.total("forwarded_write_bytes") == 8192


def test_signals_neither_break_nor_hang_a_call(
    run: Any, compiled: Any, node: OddNode, root: Path, pages: SharedPages
) -> None:
    """A handler that does I/O interrupts exchanges: nothing is lost, or waits for itself."""
    node.before = lambda operation, *_: time.sleep(0.002)
    run(compiled("signals.c"))
    assert (root / "signals.data").read_bytes() == b"".join(b"%4d" % k for k in range(200))
    assert set((root / "signals.log").read_bytes()) == {ord(".")}
    assert pages.total("forwarded_writes") >= 200


def test_a_thread_is_cancelled_between_calls_not_within(
    run: Any, compiled: Any, node: OddNode, root: Path
) -> None:
    """Cancelled during an exchange, it would leave a connection and a lock unusable."""
    node.before = lambda operation, *_: time.sleep(0.001)
    assert run(compiled("cancel.c")).stdout == "went on\n"


def test_children_of_every_kind_find_their_own_way(
    python: Any, node: OddNode, root: Path, pages: SharedPages
) -> None:
    python(
        "fd = os.open('f', os.O_CREAT | os.O_RDWR); os.write(fd, b'parent ')\n"
        "os.set_inheritable(fd, True)\n"
        "sh = lambda text: ['sh', '-c', f'printf \"{text}\" >&{fd}']\n"
        "if os.fork() == 0: os.write(fd, b'child '); os.execvp('sh', sh('exec'))\n"
        "os.wait()\n"
        "os.posix_spawnp('sh', sh(' spawned'), os.environ); os.wait()\n"
        "subprocess.run(['dd', 'status=none'], input=b' piped', stdout=fd, check=True)\n"
        "os.write(fd, b' end')\n"
    )
    assert (root / "f").read_bytes() == b"parent child exec spawned piped end"
    assert pages.total("failed_open") == 0


def test_a_remap_takes_effect_between_two_requests(
    begin: Any, node: OddNode, root: Path, pages: SharedPages
) -> None:
    with OddNode(root, id=8) as second:
        process = begin(
            "fd = os.open('f', os.O_CREAT | os.O_RDWR)\n"
            "for part in ('first', 'second', 'none', 'both'):\n"
            "    for k in range(10): os.write(fd, part[0].encode())\n"
            "    print(part, flush=True); input()\n"
            "os.fsync(fd); os.close(fd)\n"
        )
        for part, nodes in (
            ("first", [second.node]),
            ("second", []),
            ("none", [node.node, second.node]),
            ("both", [node.node, second.node]),
        ):
            assert process.stdout.readline() == f"{part}\n"
            pages.assign(nodes)
            process.stdin.write("\n")
            process.stdin.flush()
        process.communicate(timeout=HANG)
        assert process.returncode == 0
        assert (root / "f").read_bytes() == b"f" * 10 + b"s" * 10 + b"n" * 10 + b"b" * 10
        assert node.count(WRITE) + second.count(WRITE) == 30
        assert (second.count(WRITE), second.count(FSYNC)) >= (10, 1)
        assert node.count(OPEN) == node.count(CLOSE) == second.count(OPEN) == second.count(CLOSE)


def test_striping_sends_offsets_to_nodes_in_turn(
    python: Any, node: OddNode, root: Path, pages: SharedPages
) -> None:
    with OddNode(root, id=8) as second:
        pages.assign([node.node, second.node], stripe=BLOCK)
        python("fd = os.open('f', os.O_CREAT | os.O_RDWR); os.write(fd, b'x' * (5 * 4096 + 100))\n")
        assert {request[1] // BLOCK % 2 for request in node.requests if request[0] == WRITE} == {0}
        assert {request[1] // BLOCK % 2 for request in second.requests if request[0] == WRITE} == {
            1
        }
        assert node.count(WRITE) + second.count(WRITE) == 6
    assert (root / "f").stat().st_size == 5 * BLOCK + 100


def test_processes_are_bound_to_nodes_evenly(
    run: Any, node: OddNode, root: Path, pages: SharedPages
) -> None:
    with OddNode(root, id=8) as second:
        pages.assign([node.node, second.node])
        for k in range(6):
            run("dd", "if=/dev/zero", f"of=f{k}", "bs=1k", "count=4", "status=none")
        assert node.count(WRITE) == second.count(WRITE) == 12


def test_a_node_of_another_run_is_not_trusted(
    python: Any, node: OddNode, root: Path, pages: SharedPages
) -> None:
    """Its address may have been taken over; the map says which run of it is meant."""
    pages.assign([msgspec.structs.replace(node.node, id=99)])
    python("fd = os.open('f', os.O_CREAT | os.O_RDWR); os.write(fd, b'x')\n")
    assert node.count(WRITE) == 0
    assert (root / "f").read_bytes() == b"x"


def test_a_killed_client_leaves_the_node_as_it_was(begin: Any, node: OddNode, root: Path) -> None:
    process = begin(
        "fd = os.open('f', os.O_CREAT | os.O_RDWR)\nwhile True: os.pwrite(fd, b'x', 0)\n"
    )
    deadline = time.monotonic() + HANG
    while node.count(WRITE) < 50 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=HANG)
    assert node.count(WRITE) >= 50
    assert (root / "f").read_bytes() == b"x"


def test_a_descriptor_that_changes_under_writers_loses_nothing(
    run: Any, compiled: Any, node: OddNode, root: Path, pages: SharedPages
) -> None:
    """dup2 onto a number that other threads write to: each line is in the old file or the new."""
    written = int(run(compiled("rotate.c")).stdout)
    logs = [path.read_bytes() for path in root.glob("log.*")]
    assert sum(map(len, logs)) == written
    assert all(b"\0" not in log for log in logs)
    assert pages.total("forwarded_writes") > 100


def test_memory_that_cannot_be_accessed_is_an_error_of_the_call(python: Any, node: OddNode) -> None:
    """Anywhere in a large buffer, and where a read would have to write to it."""
    out = python(
        "libc.mmap.restype = ctypes.c_void_p; size = ctypes.c_size_t\n"
        "fd = os.open('f', os.O_CREAT | os.O_RDWR); os.write(fd, b'x' * 4096)\n"
        "at = libc.mmap(None, size(64 << 12), 3, 0x22, -1, ctypes.c_long(0))\n"
        "libc.mprotect(ctypes.c_void_p(at + (20 << 12)), size(4096), 0)\n"
        "call = lambda f, *a: (f(fd, *a, ctypes.c_long(0)), ctypes.get_errno())\n"
        "print(call(libc.pwrite, ctypes.c_void_p(at), size(64 << 12))[0], end=' ')\n"
        "libc.mprotect(ctypes.c_void_p(at), size(4096), 1)\n"
        "print(*call(libc.pread, ctypes.c_void_p(at), size(4096)))\n"
    )
    assert out.split() == [str(20 << 12), "-1", str(errno.EFAULT)]


def test_a_signal_waits_for_the_call_as_in_the_kernel(begin: Any, node: OddNode) -> None:
    """A handler that jumped away would leave the write to happen at any later time."""
    node.before = lambda operation, *_: time.sleep(0.4) if operation == WRITE else None
    process = begin(
        "order = []; signal.signal(signal.SIGALRM, lambda *_: order.append('handler'))\n"
        "fd = os.open('f', os.O_CREAT | os.O_RDWR); signal.setitimer(signal.ITIMER_REAL, 0.1)\n"
        "began = time.monotonic(); assert os.write(fd, b'x') == 1\n"
        "print(time.monotonic() - began >= 0.4, order)\n"
    )
    assert process.communicate(timeout=HANG)[0] == "True ['handler']\n"


def test_who_is_told_to_end_does_so_although_a_write_is_stalled(begin: Any, node: OddNode) -> None:
    stalled = stall_writes(node)
    process = begin("os.write(os.open('f', os.O_CREAT | os.O_RDWR), b'x')")
    assert stalled.wait(HANG)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=HANG) == -signal.SIGTERM


@pytest.mark.parametrize("handled", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_that_ends_a_program_cuts_its_call_between_two_pieces(
    begin: Any, node: OddNode, pages: SharedPages, handled: bool, number: int
) -> None:
    """As in the kernel: a handler runs after the call, which is whole; death comes at once."""
    pages.assign([node.node], stripe=BLOCK)
    reached, go_on = threading.Event(), threading.Event()

    def wait_at_third(operation: int, offset: int, count: int) -> None:
        if operation == WRITE and offset == 2 * BLOCK:
            reached.set()
            go_on.wait(HANG)

    node.before = wait_at_third
    process = begin(
        ("" if not handled else f"signal.signal({int(number)}, lambda *_: print('handler'))\n")
        + f"print(os.write(os.open('f', os.O_CREAT | os.O_RDWR), bytes({9 * BLOCK})))\n"
    )
    assert reached.wait(HANG)
    process.send_signal(number)
    go_on.set()
    assert process.wait(timeout=HANG) == (0 if handled else -number)
    assert process.stdout.read() == (f"handler\n{9 * BLOCK}\n" if handled else "")
    assert node.count(WRITE) == (9 if handled else 3)


@pytest.mark.parametrize("order", ["above", "below"])
def test_it_stacks_with_other_preloaded_libraries(
    compiled: Any, agent: PageServer, root: Path, node: OddNode, order: str
) -> None:
    """Above us another library sees the program's calls; below, what we leave to the kernel."""
    other = compiled("other_preload.c", "-shared", "-fPIC")
    environment = os.environ | agent.environment(**{order: [other]})
    environment["OTHER_PRELOAD"] = str(root.parent / "told")
    command = ["dd", "if=/dev/zero", "of=f", "bs=1k", "count=20", "status=none"]
    subprocess.run(command, cwd=root, env=environment, check=True, timeout=HANG)
    assert agent.pages.total("forwarded_write_bytes") == 20480
    assert (root.parent / "told").read_text() == ("20480\n" if order == "above" else "0\n")


def test_temporary_files_of_the_c_library_are_seen(python: Any, node: OddNode) -> None:
    """It opens them past us; programs write them and rename them into place."""
    python(
        "names = [ctypes.create_string_buffer(b'tmp%dXXXXXX.c' % k) for k in range(2)]\n"
        "names[0] = ctypes.create_string_buffer(b'tmpXXXXXX')\n"
        "for fd in (libc.mkstemp(names[0]), libc.mkstemps(names[1], 2)):\n"
        "    assert fd > 2 and os.write(fd, b'x' * 100) == 100; os.close(fd)\n"
    )
    assert node.count(WRITE) == 2


def test_a_vector_of_many_small_pieces(python: Any, node: OddNode, root: Path) -> None:
    python(
        "fd = os.open('f', os.O_CREAT | os.O_RDWR)\n"
        "pieces = [bytes([k % 256]) * (k % 37) for k in range(1000)]\n"
        "assert os.writev(fd, pieces) == sum(map(len, pieces))\n"
        "back = [bytearray(len(piece)) for piece in pieces]; os.preadv(fd, back, 0)\n"
        "assert back == pieces\n"
    )
    assert node.count(WRITE) == node.count(READ) == 1
