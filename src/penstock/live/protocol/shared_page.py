"""The two pages of memory that a job's processes share with their agent (native/common/page.h).

The agent writes the control page: the gate, the managed roots and the map of I/O nodes. It is
sealed, so that a job can map it but never write to it. The job writes the counters page, which the
agent does not trust.
"""

import ctypes
import fcntl
import mmap
import os
import platform
import struct
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

from penstock.errors import InputError
from penstock.identities import FIRST_FILE_SYSTEM, MOST_FILE_SYSTEMS, FileSystemId
from penstock.live.protocol import _page_layout as layout
from penstock.live.protocol.messages import Node
from penstock.printable import printable

VERSION, ROOTS, ROOT_BYTES, SLOTS = layout.VERSION, layout.ROOTS, layout.ROOT_BYTES, layout.SLOTS
FILE_SYSTEMS = layout.FILE_SYSTEMS
assert FILE_SYSTEMS == MOST_FILE_SYSTEMS
SITE_NODES, MAP_NODES = layout.SITE_NODES, layout.MAP_NODES
JOB_BYTES, TOKEN_BYTES = layout.JOB_BYTES, layout.TOKEN_BYTES
ADDRESS_BYTES, SLOT_BYTES = layout.ADDRESS_BYTES, layout.SLOT_BYTES
CONTROL_BYTES, COUNTERS_BYTES = layout.CONTROL_BYTES, layout.COUNTERS_BYTES
CONTROL_MAGIC = layout.CONTROL_MAGIC.to_bytes(8, "little")
COUNTERS_MAGIC = layout.COUNTERS_MAGIC.to_bytes(8, "little")
_HEAD = struct.Struct("<8sII")
_ROOT = struct.Struct(f"<II{ROOT_BYTES}s")
_DIRECTORY = struct.Struct(f"<II{layout.DIRECTORY_BYTES}s")
_CLOSED_UNTIL = 0
_GATE_CHANGES = layout.GATE_CHANGES - layout.CLOSED_UNTIL
"""Offsets in a gate."""
_COMPLETE = 2
"""The state of a directory's entry once it is written."""
_NODE = struct.Struct(f"<QII{ADDRESS_BYTES}sI")
assert (_ROOT.size, _NODE.size) == (layout.ROOT_ENTRY_BYTES, layout.NODE_ENTRY_BYTES)
assert _DIRECTORY.size == layout.DIRECTORY_ENTRY_BYTES
_SEAL_FUTURE_WRITE = 0x10
_FUTEX_WAIT, _FUTEX_WAKE = 0, 1
_SYS_FUTEX = {"x86_64": 202, "aarch64": 98}
_LIBC = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def futex_wake(memory: mmap.mmap, offset: int) -> None:
    """Wake all threads that wait for the 32-bit word at this offset of shared memory."""
    number = _SYS_FUTEX.get(platform.machine())
    if number is not None:
        word = ctypes.c_uint32.from_buffer(memory, offset)
        _LIBC.syscall(number, ctypes.byref(word), _FUTEX_WAKE, 2**31 - 1, None, None, 0)


def futex_wait(memory: mmap.mmap, offset: int, value: int, seconds: float) -> None:
    """Wait until the word is woken, differs from `value`, or `seconds` have passed."""
    number = _SYS_FUTEX.get(platform.machine())
    if number is None:
        time.sleep(min(seconds, 0.01))
        return
    word = ctypes.c_uint32.from_buffer(memory, offset)
    whole, part = divmod(round(max(seconds, 0.0) * 1e9), 10**9)
    timeout = _Timespec(whole, part)
    _LIBC.syscall(number, ctypes.byref(word), _FUTEX_WAIT, value, ctypes.byref(timeout), None, 0)


def _gate(file_system: FileSystemId) -> int:
    """Return the offset of a file system's gate."""
    if file_system == 0:
        return layout.CLOSED_UNTIL
    return layout.OTHER_GATES + (file_system - 1) * layout.GATE_BYTES


class SlotOwner(NamedTuple):
    """The thread that has a slot, or had it last; a `namespace` or `id` of 0 is unknown."""

    pid: int
    namespace: int = 0
    """The inode of its PID namespace; `pid` and `id` are valid in that namespace only."""
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotCounters:
    """Counters of a slot: of its thread, and of the threads that had it before.

    They count calls on files below the managed roots. Times are in nanoseconds.
    """

    pid: int
    opens: int
    reads: int
    read_bytes: int
    writes: int
    write_bytes: int
    syncs: int
    left_to_kernel: int
    waits: int
    waited: int
    gave_up: int
    last_call: int
    in_flight: int
    forwarded_reads: int
    forwarded_read_bytes: int
    forwarded_writes: int
    forwarded_write_bytes: int
    left_bytes: int
    failed_open: int
    waiting: int
    interrupted: int
    locked: int
    opens_elsewhere: int
    carried_bytes: int
    questions: int


_NAMES = tuple(field.name for field in fields(SlotCounters))
_COLUMN = {name: offset // 8 for name, offset in layout.SLOT_FIELDS.items()}
"""The word of a slot in which a counter is."""
_PROGRESS = ("waiting", "in_flight", "last_call", "read_bytes", "write_bytes", "left_bytes")
_SUMMED = tuple(n for n in _NAMES if n not in {"pid", "last_call", "in_flight", "waiting"})
LARGEST_COUNTER = 2**63 - 1
"""The largest counter that is reported: no job reaches it, but one may write it."""
_MOVED = ("read_bytes", "write_bytes", "left_bytes")
_STRIDE = SLOT_BYTES // 8


class SharedPages:
    """The control page and the counters page of a job; a context manager."""

    def __init__(
        self,
        roots: Sequence[Path],
        *,
        file_systems: Sequence[FileSystemId] = (),
        job: str = "job",
        token: bytes = bytes(TOKEN_BYTES),
        longest_wait: float = 30.0,
        never_waits: int = 64 * 1024,
        patience: float = 2.0,
        version: int = VERSION,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`file_systems` are those of the roots, one each; none: all are on the first one."""
        self.version, self._clock_ns = version, clock_ns
        if not file_systems:
            file_systems = [FIRST_FILE_SYSTEM] * len(roots)
        self.file_systems = tuple(sorted({*file_systems})) or (FIRST_FILE_SYSTEM,)
        """Those that have a root of the job."""
        self.attached = 0
        """Processes that were handed the pages."""
        self.control_fd = os.memfd_create("penstock-control", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self.counters_fd = os.memfd_create(
            "penstock-counters", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
        )
        os.ftruncate(self.control_fd, CONTROL_BYTES)
        os.ftruncate(self.counters_fd, COUNTERS_BYTES)
        self._control = mmap.mmap(self.control_fd, CONTROL_BYTES)
        self._counters = mmap.mmap(self.counters_fd, COUNTERS_BYTES)
        # One store per number, so that no reader sees half of it.
        self._words = memoryview(self._control).cast("B").cast("Q")
        self._halves = memoryview(self._control).cast("B").cast("I")
        self._counted = memoryview(self._counters).cast("B").cast("Q")
        self._words[layout.LONGEST_WAIT // 8] = round(longest_wait * 1e9)
        self._words[layout.NEVER_WAITS // 8] = never_waits
        self._words[layout.PATIENCE // 8] = round(patience * 1e9)
        self._describe(list(zip(roots, file_systems, strict=True)), job.encode(), token)
        size = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.control_fd, fcntl.F_ADD_SEALS, size | _SEAL_FUTURE_WRITE)
        fcntl.fcntl(self.counters_fd, fcntl.F_ADD_SEALS, size)

    def _describe(
        self, roots: Sequence[tuple[Path, FileSystemId]], job: bytes, token: bytes
    ) -> None:
        if len(roots) > ROOTS:
            raise InputError(f"{len(roots)} managed roots; give at most {ROOTS}")
        if not 0 < len(job) < JOB_BYTES or len(token) != TOKEN_BYTES:
            raise InputError(f"a job's name has 1 to {JOB_BYTES - 1} bytes, not {len(job)}")
        _HEAD.pack_into(self._control, 0, CONTROL_MAGIC, self.version, CONTROL_BYTES)
        _HEAD.pack_into(self._counters, 0, COUNTERS_MAGIC, self.version, SLOTS)
        self._control[layout.JOB : layout.JOB + len(job)] = job
        self._control[layout.TOKEN : layout.TOKEN + TOKEN_BYTES] = token
        for k, (root, file_system) in enumerate(roots):
            if not 0 <= file_system < FILE_SYSTEMS:
                raise InputError(f"{file_system} file systems; give at most {FILE_SYSTEMS}")
            # As the kernel names open files: resolved, and without a slash at the end.
            path = os.fsencode(root.resolve())
            if not root.is_dir() or path == b"/" or len(path) > ROOT_BYTES:
                raise InputError(
                    f"managed root {str(root)!r} cannot be managed: not a directory, or too long"
                )
            at = layout.FIRST_ROOT + k * _ROOT.size
            _ROOT.pack_into(self._control, at, len(path), file_system, path)
        self._halves[layout.ROOT_COUNT // 4] = len(roots)
        self._halves[layout.ACTIVE // 4] = 1

    def __enter__(self) -> "SharedPages":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Open the gate for good and unmap the pages; running jobs keep their mappings."""
        self.deactivate()
        self._words.release()
        self._halves.release()
        self._counted.release()
        self._control.close()
        self._counters.close()
        os.close(self.control_fd)
        os.close(self.counters_fd)

    def deactivate(self) -> None:
        """Make the client library pass all calls through from now on."""
        self._halves[layout.ACTIVE // 4] = 0
        self.open_gate()

    def assign(self, nodes: Sequence[Node], *, stripe: int = 0) -> None:
        """Send the job's data calls to these I/O nodes from now on; an empty list is direct."""
        if len(nodes) > MAP_NODES:
            raise InputError(f"{len(nodes)} I/O nodes on one host; give at most {MAP_NODES}")
        if not 0 <= stripe < 1 << 64:
            raise InputError(f"a stripe of {stripe} bytes cannot be")
        packed = [
            (
                node.id,
                int(node.transport == "tcp"),
                node.port,
                os.fsencode(node.address),
                node.number + 1,
            )
            for node in nodes
        ]
        for id, _, port, address, number in packed:
            if len(address) >= ADDRESS_BYTES:
                raise InputError(f"I/O node address {os.fsdecode(address)!r} is too long")
            if not (0 <= id < 1 << 64 and 0 <= port < 1 << 16 and 0 < number < 1 << 32):
                raise InputError(f"I/O node {number - 1} has an id or a port that cannot be")
        version = self._halves[layout.MAP_VERSION // 4]
        self._halves[layout.MAP_VERSION // 4] = (version + 1) & 0xFFFFFFFF  # odd: being written
        for k, entry in enumerate(packed):
            _NODE.pack_into(self._control, layout.FIRST_NODE + k * _NODE.size, *entry)
        self._halves[layout.MAP_COUNT // 4] = len(packed)
        self._words[layout.MAP_STRIPE // 8] = stripe
        self._halves[layout.MAP_VERSION // 4] = (version + 2) & 0xFFFFFFFF

    def limit_dirty_data(self, window: int) -> None:
        """Limit the unwritten data of direct writes, in bytes per file; 0 is unlimited."""
        self._halves[layout.DIRTY_WINDOW // 4] = window

    def close_gate(
        self, seconds: float, file_systems: Collection[FileSystemId] | None = None
    ) -> None:
        """Make large data calls wait; the gates open by themselves after `seconds`.

        Of these file systems, or of all.
        """
        until = self._clock_ns() + round(seconds * 1e9)
        for file_system in self._of(file_systems):
            self._words[(_gate(file_system) + _CLOSED_UNTIL) // 8] = until
            self._changed(file_system)

    def extend_closure(
        self, seconds: float, file_systems: Collection[FileSystemId] | None = None
    ) -> None:
        """Keep closed gates closed for `seconds` from now, without waking the waiting calls."""
        until = self._clock_ns() + round(seconds * 1e9)
        for file_system in self._of(file_systems):
            self._words[(_gate(file_system) + _CLOSED_UNTIL) // 8] = until

    def open_gate(self, file_systems: Collection[FileSystemId] | None = None) -> None:
        """Let all waiting calls on these file systems proceed, or on all."""
        for file_system in self._of(file_systems):
            self._words[(_gate(file_system) + _CLOSED_UNTIL) // 8] = 0
            self._changed(file_system)

    def _of(self, file_systems: Collection[FileSystemId] | None) -> Iterable[FileSystemId]:
        return self.file_systems if file_systems is None else file_systems

    def _changed(self, file_system: FileSystemId) -> None:
        changes = _gate(file_system) + _GATE_CHANGES
        self._halves[changes // 4] = (self._halves[changes // 4] + 1) & 0xFFFFFFFF
        futex_wake(self._control, changes)

    @property
    def wakeups(self) -> int:
        """How often the job woke the agent: a call waits at the gate, or a phase was marked."""
        return self._counted[layout.WAKEUPS // 8] & 0xFFFFFFFF

    def await_wakeup(self, wakeups: int, seconds: float) -> None:
        """Wait until `wakeups` has changed, for at most `seconds`."""
        futex_wait(self._counters, layout.WAKEUPS, wakeups, seconds)

    def wake(self) -> None:
        """End an `await_wakeup` of this process."""
        futex_wake(self._counters, layout.WAKEUPS)

    def phase_marks(self) -> tuple[int, int]:
        """Return how many phases the job itself marked as begun, and as ended."""
        return self._counted[layout.PHASES_BEGUN // 8], self._counted[layout.PHASES_ENDED // 8]

    def _slots_used(self) -> int:
        return min(self._counted[layout.TAKEN // 8], SLOTS)

    def _column(self, name: str) -> list[int]:
        """Return one counter of every slot in use, or used before."""
        first = layout.FIRST_SLOT // 8 + _COLUMN[name]
        return self._counted[first : first + self._slots_used() * _STRIDE : _STRIDE].tolist()

    @property
    def announced_bytes(self) -> int:
        """The bytes of all phases whose volume the job announced before they began."""
        return self._counted[layout.ANNOUNCED // 8]

    def threads(self) -> Iterator[SlotCounters]:
        """Yield the counters of every slot in use, or used before."""
        for k in range(self._slots_used()):
            first = layout.FIRST_SLOT // 8 + k * _STRIDE
            words = self._counted[first : first + _STRIDE].tolist()
            if words[_COLUMN["pid"]]:  # a slot may be in use before its process id is written
                yield SlotCounters(**{name: words[_COLUMN[name]] for name in _NAMES})

    def totals(self) -> dict[str, int]:
        """Return the counters that add up, summed over threads."""
        return {name: self.total(name) for name in _SUMMED}

    def total(self, name: str) -> int:
        """Return one counter, summed over threads, and bounded."""
        return min(sum(self._column(name)), LARGEST_COUNTER)

    def implausible(self) -> int:
        """Return how many counters are bounded because the job wrote more than is possible."""
        sums = [*(sum(self._column(name)) for name in _SUMMED), *self._node_bytes()]
        return sum(value > LARGEST_COUNTER for value in sums)

    def moved_bytes(self) -> int:
        """Return the bytes that the job has transferred."""
        return min(sum(map(self.total, _MOVED)), LARGEST_COUNTER)

    def bytes_by_io_node(self) -> dict[int, int]:
        """Return the bytes that each I/O node moved for the job, by its number."""
        counted = enumerate(self._node_bytes())
        return {number: min(moved, LARGEST_COUNTER) for number, moved in counted if moved}

    def _node_bytes(self) -> list[int]:
        first, own = layout.NODE_BYTES // 8, layout.BY_NODE // 8
        moved = self._counted[first : first + SITE_NODES].tolist()
        each = self._slots_used() * layout.SLOT_NODES * layout.NODE_BYTES_BYTES // 8
        numbers = self._counted[own : own + each : 2].tolist()
        for number, count in zip(numbers, self._counted[own + 1 : own + each : 2], strict=False):
            if 0 < number <= SITE_NODES:
                moved[number - 1] += count
        return moved

    def directories_elsewhere(self) -> list[str]:
        """Return the first directories outside the roots in which the job opened files to write.

        The job writes them, and may write anything.
        """
        entries = (
            _DIRECTORY.unpack_from(self._counters, layout.FIRST_DIRECTORY + k * _DIRECTORY.size)
            for k in range(layout.DIRECTORIES)
        )
        paths = (path[:length] for state, length, path in entries if state == _COMPLETE)
        # Two processes may have written the same one.
        return list(
            dict.fromkeys(printable(path.decode("utf-8", "replace")) for path in paths if path)
        )

    def last_call(self) -> int:
        """Return when the last data call ended, nanoseconds of CLOCK_MONOTONIC; 0: no call yet."""
        return max(self._column("last_call"), default=0)

    def processes(self) -> set[SlotOwner]:
        """Return the processes that made a call, including those that have ended."""
        return {thread._replace(id=0) for thread in self._owners() if thread.pid}

    def bytes_by_file_system(self) -> dict[FileSystemId, int]:
        """Return the bytes that the job has transferred, by file system."""
        if len(self.file_systems) == 1:
            moved = self.moved_bytes()
            return {self.file_systems[0]: moved} if moved else {}
        first, slots = layout.MOVED // 8, self._slots_used()
        sums = {
            file_system: sum(
                self._counted[first + file_system : first + slots * FILE_SYSTEMS : FILE_SYSTEMS]
            )
            for file_system in self.file_systems
        }
        return {each: min(moved, LARGEST_COUNTER) for each, moved in sums.items() if moved}

    def file_systems_in_call(self) -> list[tuple[SlotOwner, FileSystemId, bool]]:
        """Return the file systems of data calls, and whether each waits at the gate there."""
        waiting, in_flight = self._column("waiting"), self._column("in_flight")
        return [
            (owner, FileSystemId(calls - 1), waits != 0)
            for owner, waits, calls in zip(self._owners(), waiting, in_flight, strict=False)
            if calls - 1 in self.file_systems
        ]

    def threads_in_call(self) -> list[tuple[SlotOwner, bool]]:
        """Return the threads in a data call, and whether each waits at the gate.

        A thread that died during a call is listed too.
        """
        waiting, in_flight = self._column("waiting"), self._column("in_flight")
        # More slots may come into use between the columns.
        slots = zip(self._owners(), waiting, in_flight, strict=False)
        return [(owner, waits != 0) for owner, waits, calls in slots if waits or calls]

    def calls_in_progress(self) -> dict[SlotOwner, tuple[tuple[int, ...], bool]]:
        """Return what changes when a call in progress ends or moves data, by its thread.

        And whether the thread waits at a gate that is closed.
        """
        columns = [self._column(name) for name in _PROGRESS]
        now = self._clock_ns()
        calls: dict[SlotOwner, tuple[tuple[int, ...], bool]] = {}
        for owner, *words in zip(self._owners(), *columns, strict=False):
            waiting, in_flight = words[:2]
            if waiting or in_flight:
                at_gate = waiting != 0 and self._closed_until(in_flight - 1) > now
                calls[owner] = tuple(words), at_gate
        return calls

    def _closed_until(self, file_system: int) -> int:
        if file_system not in self.file_systems:
            return 0
        return self._words[(_gate(FileSystemId(file_system)) + _CLOSED_UNTIL) // 8]

    def _owners(self) -> Iterator[SlotOwner]:
        for pid, owner in zip(self._column("pid"), self._column("owner"), strict=False):
            yield SlotOwner(pid, owner >> 32, owner & 0xFFFFFFFF)
