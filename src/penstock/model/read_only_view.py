"""A host's view as policies get it: they can change nothing of the host through it."""

from collections.abc import Mapping
from types import MappingProxyType

from penstock.model.job import Job, JobId
from penstock.model.request import Request
from penstock.model.site import Site
from penstock.model.view import View


class ReadOnlyView:
    """What a View has, and nothing else of the host; every attribute is read-only."""

    __slots__ = ("_host",)

    def __init__(self, host: View) -> None:
        self._host = host

    @property
    def now(self) -> float:
        """The host's."""
        return self._host.now

    @property
    def site(self) -> Site:
        """The host's."""
        return self._host.site

    @property
    def jobs(self) -> Mapping[JobId, Job]:
        """The host's."""
        return MappingProxyType(self._host.jobs)

    def progress(self, job: Job) -> float:
        """The host's."""
        return self._host.progress(job)

    def age(self, job: Job) -> float:
        """The host's."""
        return self._host.age(job)

    def work_left(self, job: Job) -> float:
        """The host's."""
        return self._host.work_left(job)

    def io_done(self, job: Job) -> float:
        """The host's."""
        return self._host.io_done(job)

    def expected(self, request: Request) -> float | None:
        """The host's."""
        return self._host.expected(request)

    def done(self, request: Request) -> float:
        """The host's."""
        return self._host.done(request)

    def remaining(self, request: Request) -> float:
        """The host's."""
        return self._host.remaining(request)
