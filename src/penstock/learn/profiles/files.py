"""From counters of files to base patterns: layout, spatiality, request sizes, volumes."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.learn.profiles.profile import (
    CLASSES,
    EDGES,
    BasePattern,
    Layout,
    Operation,
    Spatiality,
)

OPERATIONS: tuple[Operation, ...] = ("read", "write")
KEPT = 8
"""Sizes that are kept of a file: Darshan has the four most frequent a record."""
MIDDLES = (
    32.0,
    *(math.sqrt(a * b) for a, b in pairwise(EDGES)),
    float(2 * EDGES[-1]),
)
"""What a request of a class is taken for where nothing better is known."""


@dataclass(slots=True)
class Use:
    """What one operation did to a file."""

    bytes: int = 0
    requests: int = 0
    consecutive: int = 0
    sequential: int = 0
    sizes: list[int] = field(default_factory=lambda: [0] * len(CLASSES))
    begin: float = math.inf
    end: float = 0.0

    def add(self, other: "Use") -> None:
        """Take in what another process did."""
        self.bytes += other.bytes
        self.requests += other.requests
        self.consecutive += other.consecutive
        self.sequential += other.sequential
        self.sizes = [a + b for a, b in zip(self.sizes, other.sizes, strict=True)]
        self.begin, self.end = min(self.begin, other.begin), max(self.end, other.end)


@dataclass(slots=True)
class FileUse:
    """What a run did to one file, all its processes together.

    `everyone`: the log holds one record for all processes instead of one for each.
    """

    read: Use
    write: Use
    ranks: set[int]
    everyone: bool = False
    ordered: bool = True
    """Offsets were looked at; of streams and collective calls they are not."""
    strided: int = 0
    common: Counter[int] = field(default_factory=Counter)
    slowest: float = 0.0
    """Seconds in calls, of the process that took longest."""

    def of(self, operation: Operation) -> Use:
        """Return one operation's use."""
        return self.read if operation == "read" else self.write

    def add(self, other: "FileUse") -> None:
        """Take in another record of the same file."""
        self.read.add(other.read)
        self.write.add(other.write)
        self.ranks |= other.ranks
        self.everyone |= other.everyone
        self.strided += other.strided
        self.common += other.common
        if len(self.common) > KEPT:
            self.common = Counter(dict(self.common.most_common(KEPT)))
        self.slowest = max(self.slowest, other.slowest)

    @property
    def shared(self) -> bool:
        """Say whether more than one process used it."""
        return self.everyone or len(self.ranks) > 1

    def dense(self, operation: Operation) -> bool:
        """Say whether its first and last access tell when it was used: it was, half that time."""
        use = self.of(operation)
        return 2 * self.slowest >= use.end - use.begin


def spatiality(file: FileUse, operation: Operation, processes: int) -> Spatiality:
    """Return how one operation went through a file.

    A process's first request says nothing. Of the others, half have to agree: begin where the one
    before ended; or be one of the file's most frequent strides away; or be anywhere further on.
    Where offsets were not looked at, it is taken for contiguous, as streams are.
    """
    use = file.of(operation)
    ranks = processes if file.everyone else len(file.ranks)
    moves = use.requests - ranks
    if not file.ordered or moves <= 0 or 2 * use.consecutive >= moves:
        return "contiguous"
    # Strides are counted of reads and writes together.
    both = file.read.requests + file.write.requests
    if 2 * file.strided * use.requests / both >= moves:
        return "strided"
    return "sequential" if 2 * use.sequential >= moves else "random"


def base_patterns(files: Iterable[FileUse], processes: int) -> tuple[BasePattern, ...]:
    """Return the base patterns of a run, the largest volume first."""
    parts: dict[tuple[Operation, Layout, Spatiality, int], _Part] = {}
    for file in files:
        for operation in OPERATIONS:
            use = file.of(operation)
            if use.bytes <= 0:
                continue
            layout: Layout = "shared" if file.shared and processes > 1 else "file-per-process"
            how = spatiality(file, operation, processes)
            for k, requests, volume in _by_size(use, file.common):
                part = parts.setdefault((operation, layout, how, k), _Part())
                part.requests += requests
                part.volume += volume
                part.files += 1
                part.everyone |= file.everyone
                part.ranks |= file.ranks
    patterns = [
        BasePattern(
            operation=operation,
            layout=layout,
            spatiality=how,
            request_size=part.volume / part.requests,
            requests=part.requests,
            volume=part.volume,
            files=part.files,
            processes=processes if part.everyone else max(len(part.ranks), 1),
        )
        for (operation, layout, how, _), part in parts.items()
    ]
    return tuple(sorted(patterns, key=lambda pattern: -pattern.volume))


@dataclass(slots=True)
class _Part:
    requests: int = 0
    volume: float = 0.0
    files: int = 0
    everyone: bool = False
    ranks: set[int] = field(default_factory=set)


def _by_size(use: Use, common: Counter[int]) -> Iterator[tuple[int, int, float]]:
    """Yield class, requests and volume; the volumes add up to what the file's counter says.

    Counters have requests by class, not bytes. A class's requests are as large as the frequent
    sizes in it, else as its middle; all are then scaled to the bytes that were counted.
    """
    requests = max(use.requests, 1)
    if not any(use.sizes):
        yield size_class(use.bytes / requests), requests, float(use.bytes)
        return
    known: dict[int, tuple[int, int]] = {}
    for size, count in common.items():
        n, total = known.get(size_class(size), (0, 0))
        known[size_class(size)] = (n + count, total + size * count)
    guessed = {}
    for k, count in enumerate(use.sizes):
        if count:
            n, total = known.get(k, (0, 0))
            guessed[k] = count * (total / n if total else MIDDLES[k])
    scale = use.bytes / math.fsum(guessed.values())
    for k, volume in guessed.items():
        yield k, use.sizes[k], volume * scale


def size_class(size: float) -> int:
    """Return which of CLASSES a request of `size` bytes is in."""
    return next((k for k, edge in enumerate(EDGES) if size <= edge), len(EDGES))
