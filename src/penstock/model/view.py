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
        """Work that the job has done until now, compute and I/O, in its isolated seconds.

        Isolated is as if it ran alone. Time spent waiting for a turn is no work.
        """
        ...

    def age(self, job: Job) -> float:
        """Seconds since the job started."""
        ...

    def work_left(self, job: Job) -> float:
        """Isolated seconds of work that the job is expected to have left; NaN if unknown."""
        ...

    def io_done(self, job: Job) -> float:
        """Isolated seconds of I/O that the job has done since it started."""
        ...

    def expected(self, request: Request) -> float | None:
        """How many isolated seconds the phase is expected to need, or None if unknown.

        It is an estimate: a phase can be overdue.
        """
        ...

    def done(self, request: Request) -> float:
        """How many isolated seconds of the phase are done, on its slowest resource."""
        ...

    def remaining(self, request: Request) -> float:
        """What is expected of the phase less what is done; negative: it is overdue.

        It is infinite where nothing is expected.
        """
        ...
