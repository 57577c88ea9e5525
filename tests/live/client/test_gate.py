"""Who waits at a closed gate, who never does, and what ends a wait."""

import os
import select
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from limits import within
from live.client.waiting_processes import WAIT, Closed, closed, next_line, until

from penstock.live.protocol import shared_page
from penstock.live.protocol._page_layout import CLOSED_UNTIL, FIRST_SLOT, NODE_BYTES

KIB, MIB = 1 << 10, 1 << 20
OPEN = "f = os.open('f', os.O_CREAT | os.O_RDWR)\n"


@pytest.fixture
def job(root: Path, tmp_path: Path) -> Iterator[Closed]:
    with closed(root, tmp_path) as job:
        yield job


# Small bursts.


def test_a_log_goes_on_for_ever(job: Closed) -> None:
    """100 KiB, line by line: more than the 64 KiB that a thread may write at once."""
    program = "import time\nfor _ in range(100): os.write(f, bytes(1024)); time.sleep(0.016)"
    assert job.python(OPEN + program).wait(WAIT) == 0
    assert job.pages.total("writes") == 100
    assert job.pages.total("waits") == 0


def test_a_stream_of_small_writes_waits(job: Closed) -> None:
    """A megabyte at full speed is no log, however small its writes."""
    process = job.python(OPEN + "for _ in range(256): os.write(f, bytes(4096))")
    job.until_it_waits(process)
    # What flowed back while it wrote the first part is little.
    assert 64 * KIB <= job.pages.total("write_bytes") <= 128 * KIB
    job.let_go(process)
    assert job.pages.total("write_bytes") == MIB


# Locks: who holds one never waits, who has given it back does.

LOCKS = {
    "flock": "fcntl.flock(f, fcntl.LOCK_EX)",
    "posix": "fcntl.lockf(f, fcntl.LOCK_EX)",
    "ofd": (
        "import struct\n"
        "fcntl.fcntl(f, fcntl.F_OFD_SETLKW, struct.pack('hhqqi', fcntl.F_WRLCK, 0, 0, 0, 0))"
    ),
    "lockf": (
        "import ctypes\n"
        "lockf = ctypes.CDLL(None).lockf\n"
        "assert lockf(f, os.F_LOCK, ctypes.c_long(0)) == 0"
    ),
}
UNLOCKS = {
    "flock": "fcntl.flock(f, fcntl.LOCK_UN)",
    "posix": "fcntl.lockf(f, fcntl.LOCK_UN)",
    "ofd": LOCKS["ofd"].replace("F_WRLCK", "F_UNLCK"),
    "lockf": "os.lseek(f, 0, 0); assert lockf(f, os.F_ULOCK, ctypes.c_long(0)) == 0",
}
PARTS = "[fcntl.lockf(f, fcntl.LOCK_UN, 1 << 20, at << 20) for at in (0, 1)]"
WRITE = "g = os.open('g', os.O_CREAT | os.O_WRONLY); os.write(g, MIB)"


def passes_then_waits(job: Closed, program: str) -> None:
    """A program makes two large writes: the first passes for a lock, the second waits."""
    process = job.python(program)
    job.until_it_waits(process)
    assert job.pages.total("write_bytes") >= MIB
    assert job.pages.total("locked") == 1
    job.let_go(process)
    assert job.pages.total("waits") == 1


@pytest.mark.parametrize("kind", LOCKS)
@pytest.mark.parametrize("end", ["unlock", "close"])
def test_who_has_given_a_lock_back_waits_again(job: Closed, kind: str, end: str) -> None:
    """One lock in a program's life must not take it out of turns for the rest of it."""
    release = UNLOCKS[kind] if end == "unlock" else "os.close(f)"
    passes_then_waits(job, "\n".join([OPEN, LOCKS[kind], WRITE, release, WRITE]))


@pytest.mark.parametrize(
    ("lock", "release"),
    [
        ("fcntl.lockf(f, fcntl.LOCK_EX, 2 << 20, 0)", PARTS),
        (LOCKS["posix"], "os.close(os.open('f', os.O_RDONLY))"),
        (LOCKS["flock"] + "; d = os.dup(f)", "fcntl.flock(d, fcntl.LOCK_UN)"),
        (LOCKS["flock"] + "; s = os.fdopen(f)", "s.close()"),
    ],
    ids=["in parts", "by any close of the file", "through a copy", "with its stream"],
)
def test_locks_end_in_many_ways(job: Closed, lock: str, release: str) -> None:
    """As the kernel has it, which nobody can follow by counting calls."""
    passes_then_waits(job, "\n".join([OPEN, lock, WRITE, release, WRITE]))


def test_a_copy_of_a_descriptor_keeps_its_flock(job: Closed) -> None:
    lines = [OPEN, LOCKS["flock"], "d = os.dup(f); os.close(f)", WRITE, "os.close(d)", WRITE]
    passes_then_waits(job, "\n".join(lines))


@pytest.mark.parametrize(("kind", "waits"), [("flock", 0), ("ofd", 0), ("posix", 1)])
def test_a_child_holds_what_it_shares(job: Closed, kind: str, waits: int) -> None:
    """flock and OFD locks belong to the open file, those of POSIX to the process."""
    fork = "child = os.fork()\nif child: sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))"
    process = job.python("\n".join([OPEN, LOCKS[kind], fork, WRITE]))
    if waits:
        until(job.waiting, "the child does not wait")
        job.pages.open_gate()
    assert process.wait(WAIT) == 0
    assert (job.pages.total("waits"), job.pages.total("locked")) == (waits, 1 - waits)


def test_a_lock_that_came_with_a_descriptor_counts(job: Closed) -> None:
    """As of flock(1), which locks, and then runs a program that knows nothing of it."""
    program = f"{LOCKS['flock']}; os.set_inheritable(f, True)\n"
    copy = "os.execlp('dd', 'dd', 'if=/dev/zero', 'of=g', 'bs=1M', 'count=3', 'status=none')"
    assert job.python(OPEN + program + copy).wait(WAIT) == 0
    assert (job.pages.total("waits"), job.pages.total("locked")) == (0, 3)


# Signals.

CATCHES = f"""
{OPEN}
try:
    os.write(f, MIB)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
TICKS = """
import signal
signal.set_wakeup_fd(os.open("../ticks", os.O_RDWR | os.O_NONBLOCK), warn_on_full_buffer=False)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
"""


@pytest.mark.timed
def test_an_interrupt_is_heard_at_the_gate(job: Closed) -> None:
    """Not after the longest wait, 30 s: somebody is waiting for the prompt."""
    process = job.python(CATCHES)
    job.until_it_waits(process)
    process.send_signal(signal.SIGINT)
    assert next_line(process, within(2.0)) == "interrupted"
    assert process.wait(WAIT) == 0
    assert (job.root / "f").stat().st_size == MIB  # files never tell EINTR: the write is done
    assert (job.pages.total("interrupted"), job.pages.total("gave_up")) == (1, 0)


def test_who_does_not_handle_an_interrupt_ends_by_it(job: Closed) -> None:
    process = job.python(f"import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL){CATCHES}")
    job.until_it_waits(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(within(2.0)) == -signal.SIGINT


@pytest.fixture
def ticks(tmp_path: Path) -> Iterator[int]:
    """A pipe to which a program's C handler writes at each signal."""
    os.mkfifo(tmp_path / "ticks")
    fd = os.open(tmp_path / "ticks", os.O_RDONLY | os.O_NONBLOCK)
    yield fd
    os.close(fd)


def check_wait_survives_ticks(job: Closed, pid: int, ticks: int) -> None:
    """Check that the timer's handler runs repeatedly during one wait."""
    before, ticks_seen = job.pages.total("waits"), 0
    with suppress(BlockingIOError):
        os.read(ticks, 65536)  # those before its wait
    while ticks_seen < 5:
        assert select.select([ticks], [], [], WAIT)[0], "the handler does not run"
        ticks_seen += len(os.read(ticks, 1))
    assert job.waiting() == {pid}
    assert job.pages.total("waits") == before


@pytest.mark.timed
@pytest.mark.parametrize("threads", [1, 2])
def test_a_timer_is_not_an_interrupt(job: Closed, ticks: int, threads: int) -> None:
    """100 signals per second: the first is unknown and ends a wait, the others do not."""
    # A daemon thread that takes no signal: those of the timer are the waiting one's.
    other = (
        "import signal, threading\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
        "threading.Thread(target=os.read, args=(os.pipe()[0], 1), daemon=True).start()\n"
        "signal.pthread_sigmask(signal.SIG_SETMASK, [])\n"
    )
    program = f"{TICKS}{OPEN}os.write(f, MIB)\n{CATCHES}os._exit(0)"
    process = job.python((other if threads > 1 else "") + program)
    until(lambda: job.pages.total("interrupted") == 1, "the first signal did not end a wait")
    job.until_it_waits(process)
    check_wait_survives_ticks(job, process.pid, ticks)
    job.until_it_waits(process)
    process.send_signal(signal.SIGINT)
    assert next_line(process, within(2.0)) == "interrupted"
    assert process.wait(WAIT) == 0
    assert (job.pages.total("interrupted"), job.pages.total("waits")) == (2, 2)


def test_a_timer_ends_no_wait_where_no_interrupt_is_handled(job: Closed, ticks: int) -> None:
    """An interrupt would have ended the program, so the signal was not an interrupt."""
    plain = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    process = job.python(f"{plain}{TICKS}{OPEN}os.write(f, MIB); os._exit(0)")
    job.until_it_waits(process)
    check_wait_survives_ticks(job, process.pid, ticks)
    job.let_go(process)
    assert job.pages.total("interrupted") == 0


def test_an_interrupted_phase_has_ended(job: Closed) -> None:
    """Otherwise no other job would have the turn for a minute."""
    process = job.python(
        "import penstock\n"
        "try:\n"
        "    with penstock.phase(): print('not here')\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)"
    )
    job.until_it_waits(process)
    process.send_signal(signal.SIGINT)
    assert next_line(process) == "interrupted"
    assert process.wait(WAIT) == 0
    assert job.pages.phase_marks() == (1, 1)


# Slots.

THREADS = """
import threading
f = os.open('t', os.O_CREAT | os.O_WRONLY)
for _ in range({count}):
    t = threading.Thread(target=os.write, args=(f, b"x")); t.start(); t.join()
"""
SHARED = shared_page.SLOTS - 1


def shared_slot_used(job: Closed) -> bool:
    at = NODE_BYTES - shared_page.SLOT_BYTES
    return any(os.pread(job.pages.counters_fd, shared_page.SLOT_BYTES, at))


def test_slots_of_ended_threads_are_used_again_and_keep_their_counts(job: Closed) -> None:
    """Also those of processes that were killed during a call, and never ended it."""
    killed = job.python(OPEN + "os.write(f, MIB)")
    job.until_it_waits(killed)
    killed.kill()
    killed.wait(WAIT)
    for _ in range(2):
        assert job.python(THREADS.format(count=SHARED)).wait(WAIT) == 0
    assert job.pages.totals()["writes"] == 2 * SHARED
    assert job.pages.totals()["write_bytes"] == 2 * SHARED
    assert not shared_slot_used(job)
    assert job.pages.threads_in_call() == []


@pytest.mark.parametrize("owner", ["unknown", "elsewhere", "here"])
def test_a_slot_whose_thread_may_live_is_left_alone(job: Closed, owner: str) -> None:
    """An older library does not record the thread; ids of another container mean nothing here."""
    here = Path("/proc/self/ns/pid").stat().st_ino & 0xFFFFFFFF
    word = {
        "unknown": 0,
        "elsewhere": here - 1 << 32 | 0x3FFFFFFF,
        "here": here << 32 | os.getpid(),
    }
    first, size = FIRST_SLOT, shared_page.SLOT_BYTES
    for k in range(SHARED):
        os.pwrite(job.pages.counters_fd, struct.pack("<Q", word[owner]), first + k * size + 22 * 8)
    os.pwrite(job.pages.counters_fd, struct.pack("<Q", SHARED), 16)
    assert job.python(OPEN + "os.write(f, b'x')").wait(WAIT) == 0
    assert shared_slot_used(job)
    assert job.pages.total("writes") == 1


def test_a_gate_is_closed_until_a_time_of_the_clock_that_is_given() -> None:
    now = 7 * 10**9
    with shared_page.SharedPages([], clock_ns=lambda: now) as pages:

        def closed_until() -> int:
            word = os.pread(pages.control_fd, 8, CLOSED_UNTIL)
            return int.from_bytes(word, sys.byteorder)

        pages.close_gate(2.0)
        assert closed_until() == 9 * 10**9
        now += 10**9
        pages.extend_closure(2.0)
        assert closed_until() == 10**10
        pages.open_gate()
        assert closed_until() == 0
