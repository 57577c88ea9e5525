"""A View of jobs that all begin now: for decisions outside of any run."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from penstock.model.job import Job, JobId
from penstock.model.request import Request
from penstock.model.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Jobs on a site at one instant, none of which has done anything yet."""

    site: Site
    jobs: Mapping[JobId, Job]
    now: float = 0.0

    @classmethod
    def of(cls, jobs: Iterable[Job], site: Site) -> "Snapshot":
        """Return the snapshot of jobs that begin together."""
        return cls(site=site, jobs=MappingProxyType({job.id: job for job in jobs}))

    def progress(self, job: Job) -> float:  # noqa: ARG002
        """Nothing is done."""
        return 0.0

    def age(self, job: Job) -> float:  # noqa: ARG002
        """All jobs begin now."""
        return 0.0

    def work_left(self, job: Job) -> float:  # noqa: ARG002
        """How long a job will take depends on what it is given."""
        return math.nan

    def io_done(self, job: Job) -> float:  # noqa: ARG002
        """Nothing is done."""
        return 0.0

    def expected(self, request: Request) -> float | None:
        """What the request says."""
        return request.io

    def done(self, request: Request) -> float:  # noqa: ARG002
        """Nothing is done."""
        return 0.0

    def remaining(self, request: Request) -> float:
        """All of it."""
        return math.inf if request.io is None else request.io
