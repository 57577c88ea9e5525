"""One phase's wish to transfer."""

from dataclasses import dataclass

from penstock.model.job import Job
from penstock.model.site import ResourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An I/O phase asks for all its resources in one event.

    `io` is the phase's length in isolated seconds where it is known (a policy that reads it says
    so in `needs`), `arrival` when it was asked for.
    """

    job: Job
    arrival: float
    resources: tuple[ResourceId, ...]
    io: float | None = None
