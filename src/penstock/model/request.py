"""One phase's wish to transfer."""

from dataclasses import dataclass

from penstock.model.job import Job
from penstock.model.site import ResourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An I/O phase asks for all its resources in one event.

    `io` is the length that is expected of the phase, in isolated seconds, or None (a policy that
    reads it says so in `needs`); `arrival` is when it was asked for.
    """

    job: Job
    arrival: float
    resources: tuple[ResourceId, ...]
    io: float | None = None
