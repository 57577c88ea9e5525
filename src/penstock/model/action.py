"""What to do: the closed vocabulary of actions that a Manager gives out for its host to do."""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.model.job import JobId
from penstock.model.site import ResourceId
from penstock.model.tuning import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something the host shall do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign(Action):
    """From its next phase on, the job uses these resources; none is direct access."""

    job: JobId
    resources: tuple[ResourceId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admit(Action):
    """The job may transfer on the resource, sharing it by weight, up to `max_share` of it."""

    job: JobId
    resource: ResourceId
    weight: float
    max_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold(Action):
    """The job, admitted before, waits again on the resource and keeps what it has done."""

    job: JobId
    resource: ResourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class SetShare(Action):
    """The job's weight on the resource changes while it transfers."""

    job: JobId
    resource: ResourceId
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tune(Action):
    """A resource takes new parameter values."""

    resource: ResourceId
    settings: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeAt(Action):
    """Send a Woke event at `time`."""

    time: float
