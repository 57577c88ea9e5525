"""The ranks that replay a phase: one process each, which begin every operation together.

`python -m penstock.live.measure.rank PLAN` is the command of a job. It forks the ranks, or under
mpiexec is one of them; each rank leaves its times beside the plan.
"""

import importlib
import mmap
import multiprocessing
import os
import random
import signal
import struct
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec

from penstock.live.measure import barrier
from penstock.live.measure.access_patterns import DATA, Pattern, Phase
from penstock.live.protocol.process import end_with_parent

_STAMP = struct.Struct("<Q")
Barrier = Callable[[], object]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the ranks of a run do, and where."""

    phase: Phase
    folder: str
    ranks: int
    seed: int
    results: str  # directory
    patience: float  # seconds that a rank waits for the others
    mpi: bool = False
    blocks: int = 0  # I/O nodes, each for ranks next to each other; 0: as ranks come

    def result(self, rank: int) -> Path:
        """Return where a rank leaves what it did."""
        return Path(self.results) / f"rank-{rank}.json"


class Did(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of one rank; times are of the host's monotonic clock."""

    rank: int
    repetition: int
    pattern: int
    operation: str
    bytes: int
    began: float
    ended: float


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a rank did, or why it could not."""

    did: list[Did] = []
    error: str = ""


def content(size: int, seed: int) -> bytearray:
    """Return what requests of a size are filled with, but for the offset at their beginning."""
    return bytearray(random.Random(seed).randbytes(size))


def stamp(buffer: bytearray | mmap.mmap, offset: int) -> None:
    """Write a request's offset at its beginning, so that no two requests are alike."""
    mark = _STAMP.pack(offset)[: len(buffer)]
    buffer[: len(mark)] = mark


class Player:
    """One rank."""

    def __init__(self, plan: Plan, rank: int, barrier: Barrier) -> None:
        self._plan = plan
        self._rank = rank
        self._barrier = barrier
        self._files: dict[tuple[str, bool], int] = {}

    def play(self) -> list[Did]:
        """Do all of the phase."""
        did = []
        self._go_by_blocks()
        for repetition in range(self._plan.phase.repetitions):
            for k, pattern in enumerate(self._plan.phase.patterns):
                act = self._prepared(pattern)
                self._barrier()
                began = time.monotonic()
                moved = act()
                ended = time.monotonic()
                did.append(
                    Did(
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
        return did

    def _go_by_blocks(self) -> None:
        """Let ranks next to each other have one I/O node, as those of a compute node do.

        A process's I/O node is given by how many came before it: ranks ask theirs one by one for
        what is behind the end of a file, which costs and moves nothing.
        """
        blocks, ranks = self._plan.blocks, self._plan.ranks
        pattern = next((p for p in self._plan.phase.patterns if p.operation in DATA), None)
        if not blocks or pattern is None:
            return
        descriptor = self._open(pattern)
        for rank in sorted(range(ranks), key=lambda r: (r * blocks % ranks, r)):
            self._barrier()
            if rank == self._rank:
                os.pread(descriptor, 1, pattern.total_size)

    def _prepared(self, pattern: Pattern) -> Callable[[], int]:
        """Return what is to be timed; opening is not, unless it is the pattern."""
        if pattern.operation == "open":
            return lambda: self._open(pattern) * 0
        if pattern.operation == "close":
            return self._close_all
        descriptor = self._open(pattern)
        filled = content(pattern.request_size, self._plan.seed)
        # Anonymous memory begins on a page, as O_DIRECT wants it.
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
        moved, until = 0, _until(pattern)
        with memoryview(buffer) as view:
            for request in range(pattern.requests(self._plan.ranks)):
                offset = pattern.offset(request, self._rank, self._plan.ranks)
                stamp(buffer, offset)
                done = 0
                while done < len(view):
                    done += os.pwrite(descriptor, view[done:], offset + done)
                moved += done
                if time.monotonic() >= until:
                    break
        return moved

    def _read(self, pattern: Pattern, descriptor: int, buffer: mmap.mmap, filled: bytearray) -> int:
        moved, until = 0, _until(pattern)
        with memoryview(buffer) as view:
            for request in range(pattern.requests(self._plan.ranks)):
                offset = pattern.offset(request, self._rank, self._plan.ranks)
                done = 0
                while done < len(view):
                    got = os.preadv(descriptor, [view[done:]], offset + done)
                    if not got:
                        raise EOFError(f"the file ends at {offset + done}")
                    done += got
                moved += done
                if pattern.validation:
                    stamp(filled, offset)
                    if view != filled:
                        raise ValueError(f"what was read at {offset} is not what was written")
                if time.monotonic() >= until:
                    break
        return moved


def _until(pattern: Pattern) -> float:
    return time.monotonic() + pattern.stone_wall if pattern.stone_wall else float("inf")


def prefill(plan: Plan) -> None:
    """Make the files that a phase reads before it writes them."""
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


def validate(plan: Plan, did: list[Did]) -> str:
    """Return what is wrong with the files that were written; nothing: every byte is right."""
    for k, pattern in enumerate(plan.phase.patterns):
        if pattern.operation != "write" or not pattern.validation:
            continue
        buffer = content(pattern.request_size, plan.seed)
        for rank in range(plan.ranks):
            moved = max(d.bytes for d in did if (d.pattern, d.rank) == (k, rank))
            with Path(pattern.file(plan.folder, rank)).open("rb") as file:
                for request in range(moved // pattern.request_size):
                    offset = pattern.offset(request, rank, plan.ranks)
                    stamp(buffer, offset)
                    file.seek(offset)
                    if file.read(len(buffer)) != buffer:
                        return f"{Path(file.name).name} is wrong at {offset}"
    return ""


def _forked_rank(plan: Plan, rank: int, gate: Connection, parent: int) -> None:
    end_with_parent(signal.SIGKILL, parent)
    _rank(plan, rank, lambda: barrier.wait(gate, plan.patience))


def _rank(plan: Plan, rank: int, meet: Barrier) -> bool:
    """Leave what the rank did; say whether it did all."""
    try:
        answer = Answer(did=Player(plan, rank, meet).play())
    except Exception as error:
        answer = Answer(error=f"rank {rank}: {str(error) or type(error).__name__}")
    plan.result(rank).write_bytes(msgspec.json.encode(answer))
    return not answer.error


def _forked(plan: Plan) -> int:
    fork = multiprocessing.get_context("fork")
    ranks: dict[Connection, BaseProcess] = {}
    for k in range(plan.ranks):
        ours, theirs = fork.Pipe()
        rank = fork.Process(target=_forked_rank, args=(plan, k, theirs, os.getpid()))
        rank.start()
        theirs.close()  # else a later rank would hold it too, and this one's end go unseen
        ranks[ours] = rank
    return barrier.attend(ranks)


def _one_of_mpi(plan: Plan) -> int:
    # By name: it is not among the package's dependencies.
    world = importlib.import_module("mpi4py.MPI").COMM_WORLD
    if world.Get_size() != plan.ranks:
        raise SystemExit(f"mpiexec started {world.Get_size()} ranks, not {plan.ranks}")
    if not _rank(plan, world.Get_rank(), world.Barrier):
        world.Abort(1)
    return 0


def main() -> int:
    """Play the plan in the file that is named."""
    plan = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Plan)
    # The terminal's interrupt ends all ranks at once, and without a word from each.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _one_of_mpi(plan) if plan.mpi else _forked(plan)


if __name__ == "__main__":
    sys.exit(main())
