"""What happens: the closed vocabulary of events that a Manager handles."""

from dataclasses import dataclass

from penstock.model.job import Job, JobId
from penstock.model.site import ResourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened at `time`, in seconds of the host's clock."""

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

    A job without I/O nodes asks for none, and its phase ends on the DIRECT_PATH. A phase that
    `resumes` began earlier and yielded its turn: that was an end with no `io`.
    """

    job: JobId
    resources: tuple[ResourceId, ...]
    io: float | None = None
    resumes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEnded(Event):
    """A job's part of its phase on one resource is over; the phase ends with its last part.

    `io` is the work of that part in isolated seconds: in a live system the bytes moved over the
    job's uncontended bandwidth, in a simulation the truth. `idle` is the time since its last
    transfer: a live system sees the end of a phase only after a while without calls.
    """

    job: JobId
    resource: ResourceId
    io: float
    idle: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUp(Event):
    """A resource serves (again): from now on jobs may be assigned to it.

    It serves the jobs of one `user`, if that is not empty, those that began on one `host`, if that
    is not None, and those of some `partitions`, if there are any.
    """

    resource: ResourceId
    user: str = ""
    host: str | None = None
    partitions: tuple[str, ...] = ()

    @property
    def is_limited(self) -> bool:
        """Whether some jobs cannot reach it."""
        return bool(self.user or self.partitions) or self.host is not None

    def serves(self, user: str, host: str, partition: str = "") -> bool:
        """Tell whether a job of this user, host and partition reaches it."""
        return (
            self.user in ("", user)
            and self.host in (None, host)
            and (not self.partitions or partition in self.partitions)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDown(Event):
    """A resource is gone: until it is up again, no job is assigned to it."""

    resource: ResourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned(Event):
    """A job has these resources for the rest of its life: it, or a person, asked for them."""

    job: JobId
    resources: tuple[ResourceId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsChanged(Event):
    """More is known of running jobs than before, or what is decided for them is (not) enforced."""

    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Woke(Event):
    """The time of an earlier WakeAt has come."""
