"""What happens: the closed vocabulary of events that a Manager takes in."""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.model.job import Job, JobId
from penstock.model.site import ResourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened at `time`, in the host's seconds."""

    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted(Event):
    """A job began to run on its compute nodes."""

    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded(Event):
    """A job has left its compute nodes."""

    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseBegan(Event):
    """A job asks to transfer on all of `resources`; `io` isolated seconds on each, if known.

    A job that goes past all of them asks for none, and its phase ends on the DIRECT_PATH. One that
    `resumes` began before, and lent its turn: its end was told with no `io`, and is to come.
    """

    job: JobId
    resources: tuple[ResourceId, ...]
    io: float | None = None
    resumes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEnded(Event):
    """A job's part of its phase on one resource is over; the phase ends with its last part.

    `io` is the work of that part in isolated seconds: in a live system the bytes moved over the
    job's uncontended bandwidth, in a simulation the truth. `idle` is how long ago its last transfer
    was: a live system sees that a phase is over only when nothing has come for a while.
    """

    job: JobId
    resource: ResourceId
    io: float
    idle: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Event):
    """A resource reports its metrics over the last interval."""

    resource: ResourceId
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUp(Event):
    """A resource began to serve."""

    resource: ResourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDown(Event):
    """A resource is gone."""

    resource: ResourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class Woke(Event):
    """The time of an earlier WakeAt has come."""
