"""What a policy may look at when it decides."""

from collections.abc import Mapping
from typing import Protocol

from penstock.model.job import Job, JobId
from penstock.model.request import Request
from penstock.model.site import Site


class View(Protocol):
    """The world as its host (simulator or controller) knows it at one instant.

    A policy gets its time from here, and keeps no view beyond the call that gave it.
    """

    @property
    def now(self) -> float:
        """Seconds since the host began."""
        ...

    @property
    def site(self) -> Site:
        """The machine."""
        ...

    @property
    def jobs(self) -> Mapping[JobId, Job]:
        """The jobs that run now, with the latest estimates."""
        ...

    def progress(self, job: Job) -> float:
        """Work that the job has done since it started, in isolated seconds (compute and I/O)."""
        ...

    def age(self, job: Job) -> float:
        """Seconds since the job started."""
        ...

    def work_left(self, job: Job) -> float:
        """Isolated seconds of work (compute and I/O) that the job has still to do."""
        ...

    def io_done(self, job: Job) -> float:
        """Isolated seconds of I/O that the job has done since it started."""
        ...

    def remaining(self, request: Request) -> float:
        """Isolated seconds of I/O that the request still needs, on its slowest resource."""
        ...
