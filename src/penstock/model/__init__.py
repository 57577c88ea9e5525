"""The nouns of the field: what jobs, sites, events and actions are. No behaviour, no I/O."""

from penstock.model.action import Action, Admit, Assign, Hold, Tune, WakeAt
from penstock.model.curve import Curve
from penstock.model.event import (
    Event,
    JobEnded,
    JobsChanged,
    JobStarted,
    NodeDown,
    NodeUp,
    PhaseBegan,
    PhaseEnded,
    Pinned,
    Woke,
)
from penstock.model.job import Job, JobId
from penstock.model.observation import PATTERNS, Observation, Pattern
from penstock.model.read_only_view import ReadOnlyView
from penstock.model.request import Request
from penstock.model.schedule import Pack, Schedule
from penstock.model.site import DIRECT_PATH, FileSystem, ResourceId, Site
from penstock.model.snapshot import Snapshot
from penstock.model.tuning import Context, Operation, Parameter, Value
from penstock.model.view import View

__all__ = [
    "DIRECT_PATH",
    "PATTERNS",
    "Action",
    "Admit",
    "Assign",
    "Context",
    "Curve",
    "Event",
    "FileSystem",
    "Hold",
    "Job",
    "JobEnded",
    "JobId",
    "JobStarted",
    "JobsChanged",
    "NodeDown",
    "NodeUp",
    "Observation",
    "Operation",
    "Pack",
    "Parameter",
    "Pattern",
    "PhaseBegan",
    "PhaseEnded",
    "Pinned",
    "ReadOnlyView",
    "Request",
    "ResourceId",
    "Schedule",
    "Site",
    "Snapshot",
    "Tune",
    "Value",
    "View",
    "WakeAt",
    "Woke",
]
