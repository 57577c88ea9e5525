"""The ranks that replay a phase: one process per rank; all begin every operation together.

`python -m penstock.live.measure.rank PLAN` is the command of a job. It forks the ranks, or under
mpiexec is one of them. Each rank writes its times beside the plan. Forked ranks meet at a barrier
of sockets: semaphores need shared memory, which not every user may write.
"""

import importlib
import mmap
import multiprocessing
import os
import random
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import BrokenBarrierError

import msgspec

from penstock.live.measure.access_patterns import DATA, Pattern, Phase
from penstock.live.protocol.process import end_with_parent

_STAMP = struct.Struct("<Q")
READY, GO, BROKEN = b"ready", b"go", b"broken"
Barrier = Callable[[], object]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The work of the ranks of a run, and where they do it."""

    phase: Phase
    folder: str
    ranks: int
    seed: int
    results: str  # directory
    timeout: float  # seconds that a rank waits for the others
    mpi: bool = False
    order: list[int] = []  # in which ranks connect to I/O nodes; empty: as they come
    io_nodes: list[str] = []  # the sockets of I/O nodes, or their HOST:PORT, by number

    def result(self, rank: int) -> Path:
        """Return the file into which a rank writes its result."""
        return Path(self.results) / f"rank-{rank}.json"


class RankOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of one rank, with times of the host's monotonic clock."""

    rank: int
    repetition: int
    pattern: int
    operation: str
    bytes: int
    began: float
    ended: float


class RankResult(msgspec.Struct, frozen=True, kw_only=True):
    """The operations of a rank and the I/O nodes that it used, or its error."""

    operations: list[RankOperation] = []
    io_nodes: list[int] = []
    error: str = ""


def content(size: int, seed: int) -> bytearray:
    """Return the content of a request, without the offset at its beginning."""
    return bytearray(random.Random(seed).randbytes(size))


def stamp(buffer: bytearray | mmap.mmap, offset: int) -> None:
    """Write a request's offset at its beginning, so that no two requests are alike."""
    mark = _STAMP.pack(offset)[: len(buffer)]
    buffer[: len(mark)] = mark


class Rank:
    """One rank of a phase."""

    def __init__(self, plan: Plan, rank: int, barrier: Barrier) -> None:
        self._plan = plan
        self._rank = rank
        self._barrier = barrier
        self._files: dict[tuple[str, bool], int] = {}
        self._cut: dict[tuple[str, str, int], int] = {}
        """Requests of the writes that a stone wall ended, by file, spatiality and request size."""

    def run(self) -> RankResult:
        """Do all operations of the phase."""
        operations = []
        self._connect_in_order()
        for repetition in range(self._plan.phase.repetitions):
            for k, pattern in enumerate(self._plan.phase.patterns):
                operation = self._prepare(pattern)
                self._barrier()
                began = time.monotonic()
                moved = operation()
                ended = time.monotonic()
                operations.append(
                    RankOperation(
                        rank=self._rank,
                        repetition=repetition,
                        pattern=k,
                        operation=pattern.operation,
                        bytes=moved,
                        began=began,
                        ended=ended,
                    )
                )
            self._barrier()
            self._close_all()
        return RankResult(operations=operations, io_nodes=connected(self._plan.io_nodes))

    def _connect_in_order(self) -> None:
        """Connect to an I/O node when it is this rank's turn.

        The order of arrival determines the I/O node of a process. So ranks take turns to read from
        an empty file, which transfers nothing. Forked ranks are started in that order, each after
        the one before has connected; those of MPI have to meet.
        """
        for rank in self._plan.order:
            if self._plan.mpi:
                self._barrier()
            if rank == self._rank:
                connect(self._plan)

    def _prepare(self, pattern: Pattern) -> Callable[[], int]:
        """Return the function to time; opening is not timed unless it is the operation."""
        if pattern.operation == "open":
            return lambda: self._open(pattern) * 0
        if pattern.operation == "close":
            return self._close_all
        descriptor = self._open(pattern)
        filled = content(pattern.request_size, self._plan.seed)
        # Anonymous memory begins on a page, as O_DIRECT requires.
        buffer = mmap.mmap(-1, pattern.request_size)
        buffer[:] = bytes(filled)
        if pattern.operation == "write":
            return lambda: self._write(pattern, descriptor, buffer)
        return lambda: self._read(pattern, descriptor, buffer, filled)

    def _open(self, pattern: Pattern) -> int:
        key = (pattern.file(self._plan.folder, self._rank), pattern.direct_io)
        if key not in self._files:
            flags = os.O_RDWR | os.O_CREAT | (os.O_DIRECT if pattern.direct_io else 0)
            self._files[key] = os.open(key[0], flags, 0o600)
        return self._files[key]

    def _close_all(self) -> int:
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()
        return 0

    def _write(self, pattern: Pattern, descriptor: int, buffer: mmap.mmap) -> int:
        moved, deadline = 0, _deadline(pattern)
        self._cut.pop(self._cut_key(pattern), None)
        with memoryview(buffer) as view:
            for request in range(pattern.requests(self._plan.ranks)):
                offset = pattern.offset(request, self._rank, self._plan.ranks)
                stamp(buffer, offset)
                done = 0
                while done < len(view):
                    done += os.pwrite(descriptor, view[done:], offset + done)
                moved += done
                if time.monotonic() >= deadline:
                    self._cut[self._cut_key(pattern)] = request + 1
                    break
        return moved

    def _read(self, pattern: Pattern, descriptor: int, buffer: mmap.mmap, filled: bytearray) -> int:
        moved, deadline = 0, _deadline(pattern)
        requests = pattern.requests(self._plan.ranks)
        with memoryview(buffer) as view:
            for request in range(min(requests, self._cut.get(self._cut_key(pattern), requests))):
                offset = pattern.offset(request, self._rank, self._plan.ranks)
                done = 0
                while done < len(view):
                    count = os.preadv(descriptor, [view[done:]], offset + done)
                    if not count:
                        raise EOFError(f"the file ends at {offset + done}")
                    done += count
                moved += done
                if pattern.validation:
                    stamp(filled, offset)
                    if view != filled:
                        raise ValueError(f"what was read at {offset} differs from what was written")
                if time.monotonic() >= deadline:
                    break
        return moved

    def _cut_key(self, pattern: Pattern) -> tuple[str, str, int]:
        file = pattern.file(self._plan.folder, self._rank)
        return (file, pattern.spatiality, pattern.request_size)


def _deadline(pattern: Pattern) -> float:
    return time.monotonic() + pattern.stone_wall if pattern.stone_wall else float("inf")


def connect(plan: Plan) -> None:
    """Connect to an I/O node: the next one in the job's order."""
    empty = os.open(f"{plan.folder}/empty", os.O_RDONLY | os.O_CREAT, 0o600)
    os.pread(empty, 1, 0)
    os.close(empty)


def connected(io_nodes: Sequence[str]) -> list[int]:
    """Return the numbers of the I/O nodes, given by their sockets, that this process uses."""
    peers = set()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names are numbers
        with suppress(OSError):  # no socket, or the descriptor of the list itself
            connection = socket.socket(fileno=int(name))
            try:
                peer = connection.getpeername()
                peers.add(":".join(map(str, peer[:2])) if isinstance(peer, tuple) else peer)
            finally:
                connection.detach()
    return [number for number, path in enumerate(io_nodes) if path in peers]


def prefill(plan: Plan) -> None:
    """Create the files that a phase reads before it writes them."""
    written: set[str] = set()
    for pattern in plan.phase.patterns:
        for rank in range(plan.ranks):
            file = pattern.file(plan.folder, rank)
            if pattern.operation == "read" and file not in written:
                _fill(plan, pattern, rank, file)
        if pattern.operation in DATA:
            written |= {pattern.file(plan.folder, rank) for rank in range(plan.ranks)}


def _fill(plan: Plan, pattern: Pattern, rank: int, file: str) -> None:
    buffer = content(pattern.request_size, plan.seed)
    Path(file).touch(mode=0o600)
    with Path(file).open("r+b") as out:
        for request in range(pattern.requests(plan.ranks)):
            offset = pattern.offset(request, rank, plan.ranks)
            stamp(buffer, offset)
            out.seek(offset)
            out.write(buffer)


def validate(plan: Plan, operations: list[RankOperation]) -> str:
    """Return what is wrong with the files that were written, or an empty string."""
    writes = {k: p for k, p in enumerate(plan.phase.patterns) if p.operation == "write"}
    # The content depends on the size of the requests: those of the last write of a file.
    sizes = {pattern.file("", 0): pattern.request_size for pattern in writes.values()}
    for k, pattern in writes.items():
        if not pattern.validation or sizes[pattern.file("", 0)] != pattern.request_size:
            continue
        buffer = content(pattern.request_size, plan.seed)
        for rank in range(plan.ranks):
            moved = max(o.bytes for o in operations if (o.pattern, o.rank) == (k, rank))
            with Path(pattern.file(plan.folder, rank)).open("rb") as file:
                for request in range(moved // pattern.request_size):
                    offset = pattern.offset(request, rank, plan.ranks)
                    stamp(buffer, offset)
                    file.seek(offset)
                    if file.read(len(buffer)) != buffer:
                        return f"{Path(file.name).name} is wrong at {offset}"
    return ""


def _run_forked_rank(plan: Plan, rank: int, gate: Connection, parent: int) -> None:
    end_with_parent(signal.SIGKILL, parent)
    run_rank(plan, rank, lambda: wait_at_barrier(gate, plan.timeout))


def run_rank(plan: Plan, rank: int, barrier: Barrier) -> bool:
    """Write the result of a rank; return whether it did all operations."""
    try:
        result = Rank(plan, rank, barrier).run()
    except Exception as error:
        result = RankResult(error=f"rank {rank}: {str(error) or type(error).__name__}")
    plan.result(rank).write_bytes(msgspec.json.encode(result))
    return not result.error


def _fork_ranks(plan: Plan) -> int:
    fork = multiprocessing.get_context("fork")
    ranks: dict[Connection, BaseProcess] = {}
    for k in plan.order or range(plan.ranks):
        parent_end, rank_end = fork.Pipe()
        rank = fork.Process(target=_run_forked_rank, args=(plan, k, rank_end, os.getpid()))
        rank.start()
        rank_end.close()  # a later rank would inherit it, and hide the end of this one
        ranks[parent_end] = rank
        if plan.order:
            parent_end.poll(plan.timeout)  # until it waits for the others, connected
    return serve_barrier(ranks)


def wait_at_barrier(gate: Connection, timeout: float) -> None:
    """Return once every rank waits; raise BrokenBarrierError if one has ended, or on timeout."""
    gate.send_bytes(READY)
    if not gate.poll(timeout) or gate.recv_bytes() != GO:
        raise BrokenBarrierError


def serve_barrier(ranks: Mapping[Connection, BaseProcess]) -> int:
    """Release the ranks together until all have ended; return their worst exit status.

    Each rank is identified by its gate; it alone holds the other end, for as long as it lives. A
    rank that waits after another has ended is released with an error; if one fails, all are killed.
    """
    alive = dict(ranks)
    waiting: set[Connection] = set()
    while alive:
        for gate in connection.wait(list(alive)):
            assert isinstance(gate, Connection)
            try:
                gate.recv_bytes()
                waiting.add(gate)
            except (EOFError, OSError):
                ended = alive.pop(gate)
                waiting.discard(gate)
                ended.join()
                if ended.exitcode:
                    for other in alive.values():
                        other.kill()
        broken = len(alive) < len(ranks)
        if broken or len(waiting) == len(ranks):
            for gate in waiting:
                with suppress(OSError):  # it has just ended
                    gate.send_bytes(BROKEN if broken else GO)
            waiting.clear()
    return max(abs(process.exitcode or 0) for process in ranks.values())


def _run_mpi_rank(plan: Plan) -> int:
    # By name: it is not among the package's dependencies.
    world = importlib.import_module("mpi4py.MPI").COMM_WORLD
    if world.Get_size() != plan.ranks:
        raise SystemExit(f"mpiexec started {world.Get_size()} ranks, not {plan.ranks}")
    if not run_rank(plan, world.Get_rank(), world.Barrier):
        world.Abort(1)
    return 0


def main() -> int:
    """Run the plan in the file that the first argument names."""
    plan = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Plan)
    # The terminal's interrupt ends all ranks at once, without a message from each.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _run_mpi_rank(plan) if plan.mpi else _fork_ranks(plan)


if __name__ == "__main__":
    sys.exit(main())
