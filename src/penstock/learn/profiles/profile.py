"""The profile of a run, and the two descriptions of a job that are made of it."""

import math
from dataclasses import dataclass
from typing import Literal

from penstock.errors import InputError
from penstock.model.write import Write

Operation = Literal["read", "write"]
Layout = Literal["shared", "file-per-process"]
Spatiality = Literal["contiguous", "strided", "sequential", "random"]
"""Sequential: forward, in steps of any length. The other three as in docs/live/patterns.md."""
Source = Literal["dxt", "heatmap", "files", "none"]
"""Where times are from: every request, bins of time, the first and last access of each file."""
EDGES = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30)
"""Sizes of requests at which Darshan's ten classes end, but the last."""
CLASSES = (
    *("0-100", "100-1K", "1K-10K", "10K-100K", "100K-1M"),
    *("1M-4M", "4M-10M", "10M-100M", "100M-1G", "1G+"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BasePattern:
    """A part of a run's I/O that is alike in all that an explorer can replay."""

    operation: Operation
    layout: Layout
    spatiality: Spatiality
    request_size: float
    requests: int
    volume: float
    files: int
    processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What went through one programming interface; each lies on those below it."""

    name: str
    files: int
    read: int
    written: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IoPhase:
    """A stretch of I/O, in seconds since the run began."""

    began: float
    ended: float
    read: float
    written: float

    @property
    def seconds(self) -> float:
        """Return how long it took."""
        return self.ended - self.began


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """Bytes by group of ranks (rows) and time (columns of equal length)."""

    ranks: tuple[str, ...]
    written: tuple[tuple[float, ...], ...]
    read: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one run did to its files. Bytes and seconds; what a log does not say is None."""

    log: str
    name: str
    version: str
    start: float
    """When it began, in seconds since 1970."""
    seconds: float
    processes: int
    nodes: int | None
    """Compute nodes that did I/O."""
    executable: str
    user: str
    read: int
    written: int
    shared_files: int
    own_files: int
    layers: tuple[Layer, ...]
    patterns: tuple[BasePattern, ...]
    read_sizes: tuple[int, ...]
    write_sizes: tuple[int, ...]
    """Requests in each of CLASSES."""
    io_seconds: float
    """I/O time of the slowest process, over all calls."""
    source: Source
    phases: tuple[IoPhase, ...]
    w_iter: float | None
    heat: Heat | None
    stripe_count: int | None
    stripe_size: int | None
    """The striping of the files with the most bytes written."""
    notes: tuple[str, ...]

    @property
    def volume(self) -> int:
        """Return the bytes that it moved."""
        return self.read + self.written


def phases_of(profile: Profile) -> tuple[tuple[float, float], ...]:
    """Return (compute, I/O) in seconds, as a workload has them; unknown phases are one."""
    if not profile.phases:
        io = min(profile.io_seconds, profile.seconds)
        return ((profile.seconds - io, io),)
    phases, before = [], 0.0
    for phase in profile.phases:
        phases.append((max(phase.began - before, 0.0), phase.seconds))
        before = phase.ended
    if profile.seconds > before:
        phases.append((profile.seconds - before, 0.0))
    return tuple(phases)


def nodes_of(profile: Profile, cores: int | None = None) -> int | None:
    """Return the compute nodes: as logged, else by `cores` processes each, else None."""
    if profile.nodes is not None:
        return profile.nodes
    return None if cores is None else max(math.ceil(profile.processes / cores), 1)


def write_of(profile: Profile, *, cores: int | None = None) -> Write:
    """Return the largest write of a run, for a model of writes; `cores` is processes per node.

    InputError if the run wrote nothing, or if neither the log nor `cores` gives the nodes.
    """
    writes = [p for p in profile.patterns if p.operation == "write" and p.volume > 0]
    if not writes:
        raise InputError(f"{profile.log}: nothing was written; give a log of a run that writes")
    nodes = nodes_of(profile, cores)
    if nodes is None:
        raise InputError(
            f"{profile.log} does not say on how many nodes its {profile.processes} processes were; "
            "give the processes of a node with --cores"
        )
    volume = max((phase.written for phase in profile.phases), default=float(profile.written))
    # Files that hold next to nothing (a log, a header) do not make their processes writers.
    main = max(writes, key=lambda pattern: pattern.volume)
    shared = sum(p.volume for p in writes if p.layout == "shared")
    nodes = min(nodes, main.processes)
    on_each = max(math.ceil(main.processes / nodes), 1)
    return Write(
        nodes=nodes,
        cores=on_each,
        burst=(volume or profile.written) / (nodes * on_each),
        shared=2 * shared >= profile.written,
        stripe_count=profile.stripe_count,
        stripe_size=profile.stripe_size,
    )
