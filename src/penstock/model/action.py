"""What to do: the closed vocabulary of actions that a Manager (or the Council) returns."""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.model.job import JobId
from penstock.model.site import ResourceId
from penstock.model.tuning import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something for the host to do."""


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
    """The job waits on the resource; if it was admitted before, it keeps what it has done."""

    job: JobId
    resource: ResourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class Tune(Action):
    """A resource takes new parameter values: the Council's action, which no record contains."""

    resource: ResourceId
    settings: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeAt(Action):
    """Send a Woke event at `time`."""

    time: float
