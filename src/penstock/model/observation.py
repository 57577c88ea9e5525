"""What an I/O node saw of its clients' requests in one interval."""

from dataclasses import dataclass
from typing import Literal, get_args

Pattern = Literal["file-per-process", "shared-contiguous", "shared-strided"]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)
"""The classes of access patterns (thesis forwarding, 3.2): layout of files, and spatiality."""
UNKNOWN = "unknown"
"""The pattern of requests that are in none of the classes, or of which too little is seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The metrics of one I/O node over one interval (thesis forwarding, 3.2).

    A handle is a file, whichever client has it open. Requests count when they arrive, bytes when
    they have been served.
    """

    seconds: float
    busy: float
    """Seconds of them in which a request waited or was served: an idle I/O node is not slow."""
    reads: int
    writes: int
    read_bytes: int
    write_bytes: int
    handles: int
    """Files that requests arrived for."""
    clients: int
    """Connections that sent requests."""
    smallest: int
    largest: int
    """Request sizes in bytes; 0 if there was no request."""
    asked: int
    """Bytes of all requests that arrived."""
    distance: float
    """Mean of |offset - offset of the request before to the same handle|, over those with one."""
    forward: float
    """The part of those that began where the one before to the same handle ended."""
    queued: float
    """Requests that waited or were served, on the mean over the interval."""
    sequential: float | None = None
    """The part of requests that began where the one before in their stream ended, no strides.

    A stream is the requests of one process to a file that it opened. None: not observed.
    """
    strided: float | None = None
    """The part in strides: runs of requests that begin as far ahead as the one before did."""
    shared: float | None = None
    """The part that was for files with several streams in the interval."""

    @property
    def requests(self) -> int:
        """Return how many arrived."""
        return self.reads + self.writes

    @property
    def moved(self) -> int:
        """Return the bytes that were served."""
        return self.read_bytes + self.write_bytes
