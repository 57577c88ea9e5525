"""Accesses that no model was trained with, and what each is: a class of patterns, or none.

A kind gives the requests of each rank, without end. Where ranks read, files are holes of the right
size. The size of a request is a kind's own, or any: drawn between two powers of two for each run.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, repeat
from typing import Literal, NamedTuple

from penstock.learn.detection.samples import Operation
from penstock.model.observation import Pattern

KIB, MIB = 2**10, 2**20
SEGMENT = 64 * MIB
"""Bytes that a rank goes through before it begins again."""
FEW = 24
"""Requests to a segment before the next file."""


class Access(NamedTuple):
    """One request."""

    file: str
    offset: int
    bytes: int
    read: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The parameters of one run."""

    ranks: int
    size: int
    """Bytes of a request."""
    operation: Operation
    seed: int

    @property
    def read(self) -> bool:
        """Whether ranks read."""
        return self.operation == "read"

    def random(self, rank: int) -> random.Random:
        """Return a rank's random numbers."""
        return random.Random(f"{self.seed} {rank}")

    def sizes(self, rank: int) -> Iterator[int]:
        """Yield request sizes without end, from an eighth to twice the size."""
        rng = self.random(rank)
        while True:
            yield rng.randrange(self.size // 8, 2 * self.size)


Ranks = Callable[[Run, int], Iterator[Access]]


def _through(run: Run, file: str, begin: int, sizes: Iterator[int]) -> Iterator[Access]:
    """Go through a segment of a file, again and again."""
    offset = 0
    for size in sizes:
        offset = 0 if offset + size > SEGMENT else offset
        yield Access(file, begin + offset, size, run.read)
        offset += size


def _own(run: Run, rank: int) -> Iterator[Access]:
    return _through(run, f"own.{rank}", 0, repeat(run.size))


def _own_of_any_size(run: Run, rank: int) -> Iterator[Access]:
    return _through(run, f"own.{rank}", 0, run.sizes(rank))


def _segments(run: Run, rank: int) -> Iterator[Access]:
    return _through(run, "shared", rank * SEGMENT, repeat(run.size))


def _segments_of_any_size(run: Run, rank: int) -> Iterator[Access]:
    return _through(run, "shared", rank * SEGMENT, run.sizes(rank))


def _short_segments(run: Run, rank: int) -> Iterator[Access]:
    for file in count():
        for k in range(FEW):
            yield Access(f"shared.{file}", (rank * FEW + k) * run.size, run.size, run.read)


def _strides(run: Run, rank: int) -> Iterator[Access]:
    requests = max(SEGMENT // run.size, 64)
    for k in count():
        yield Access("shared", (k % requests * run.ranks + rank) * run.size, run.size, run.read)


def _own_strides(run: Run, rank: int) -> Iterator[Access]:
    for k in count():
        yield Access(f"own.{rank}", 4 * k * run.size % SEGMENT, run.size, run.read)


def _random(run: Run, rank: int) -> Iterator[Access]:
    blocks, rng = run.ranks * SEGMENT // run.size, run.random(rank)
    while True:
        yield Access("shared", rng.randrange(blocks) * run.size, run.size, run.read)


def _random_of_any_size(run: Run, rank: int) -> Iterator[Access]:
    rng = run.random(-1 - rank)
    for size in run.sizes(rank):
        yield Access("shared", rng.randrange(run.ranks * SEGMENT), size, run.read)


def _own_random(run: Run, rank: int) -> Iterator[Access]:
    rng = run.random(rank)
    while True:
        yield Access(
            f"own.{rank}", rng.randrange(SEGMENT // run.size) * run.size, run.size, run.read
        )


def _pieces(run: Run, rank: int) -> Iterator[Access]:
    """Two requests, a hole, one request, a larger hole, as of a sparse matrix."""
    offset = 0
    while True:
        for step in (1, 3, 7):
            yield Access("shared", rank * SEGMENT + offset % SEGMENT, run.size, run.read)
            offset += step * run.size


def _backwards(run: Run, rank: int) -> Iterator[Access]:
    requests = SEGMENT // run.size
    for k in count(1):
        offset = rank * SEGMENT + (-k % requests) * run.size
        yield Access("shared", offset, run.size, run.read)


def _written_then_read(ranks: Ranks) -> Ranks:
    """Write 32 requests, then read them."""

    def both(run: Run, rank: int) -> Iterator[Access]:
        requests = ranks(run, rank)
        while True:
            some = [next(requests) for _ in range(32)]
            yield from (one._replace(read=False) for one in some)
            yield from (one._replace(read=True) for one in some)

    return both


def _mixed(*kinds: Ranks) -> Ranks:
    """The first ranks of a job do one thing, the others another."""
    return lambda run, rank: kinds[rank * len(kinds) // run.ranks](run, rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of access, and its class."""

    name: str
    pattern: Pattern | Literal["none"]
    ranks: Ranks
    size: int = 0
    """Bytes of a request; 0: any."""

    def run(self, *, ranks: int, operation: Operation, seed: int) -> Run:
        """Return the parameters of a run; a size that is drawn depends on the seed."""
        drawn = random.Random(f"{seed} {self.name} {ranks} {operation}")
        size = self.size or int(2 ** drawn.uniform(13, 19))
        return Run(ranks=ranks, size=size, operation=operation, seed=seed)


FPP: Pattern = "file-per-process"
SC: Pattern = "shared-contiguous"
SS: Pattern = "shared-strided"
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(name="on-grid-own-files", pattern=FPP, ranks=_own, size=64 * KIB),
        Kind(name="on-grid-segments", pattern=SC, ranks=_segments, size=64 * KIB),
        Kind(name="on-grid-strides", pattern=SS, ranks=_strides, size=64 * KIB),
        Kind(name="any-size-own-files", pattern=FPP, ranks=_own),
        Kind(name="any-size-segments", pattern=SC, ranks=_segments),
        Kind(name="any-size-strides", pattern=SS, ranks=_strides),
        Kind(name="small-strides", pattern=SS, ranks=_strides, size=4 * KIB),
        Kind(name="large-strides", pattern=SS, ranks=_strides, size=6 * MIB),
        Kind(name="varying-own-files", pattern=FPP, ranks=_own_of_any_size),
        Kind(name="varying-segments", pattern=SC, ranks=_segments_of_any_size),
        Kind(name="short-segments", pattern=SC, ranks=_short_segments, size=256 * KIB),
        Kind(name="write-read-own-files", pattern=FPP, ranks=_written_then_read(_own)),
        Kind(name="write-read-segments", pattern=SC, ranks=_written_then_read(_segments)),
        Kind(name="random", pattern="none", ranks=_random),
        Kind(name="random-varying", pattern="none", ranks=_random_of_any_size),
        Kind(name="random-own-files", pattern="none", ranks=_own_random),
        Kind(name="strides-own-files", pattern="none", ranks=_own_strides),
        Kind(name="pieces", pattern="none", ranks=_pieces),
        Kind(name="backwards", pattern="none", ranks=_backwards),
        Kind(name="own-files-and-segments", pattern="none", ranks=_mixed(_own, _segments)),
        Kind(name="own-files-and-strides", pattern="none", ranks=_mixed(_own, _strides)),
        Kind(name="segments-and-random", pattern="none", ranks=_mixed(_segments, _random)),
    )
}
