"""What the dashboard is told: the types are the code and the OpenAPI document.

Times are seconds since the epoch. A field that may be left out is one that only a token opens.
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.live.http.dashboard.lanes import Kind, Phase

Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Stretch = tuple[str, Kind, float, float | None, Share]
"""Job, kind, start, end (None: it goes on) and mean share."""


class LaneJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job of the timeline."""

    id: str
    serial: Count
    state: str  # running, ended, lost; failed: it ended with another status than 0
    began: float
    ended: float | None
    nodes: Count
    processes: Count | None
    io_nodes: list[int]
    doing: str  # computing, transferring, waiting, would wait; or the state of one that is over
    since: float
    share: Share
    behind: list[str]  # whom it waits for, the next ones
    ahead: Count  # how many they are in all
    at_most_seconds: float | None
    w_iter: float | None
    pattern: str | None
    forwarded_bytes: Count
    direct_bytes: Count
    rate: float  # bytes a second
    waits: Count
    waited_seconds: float
    fail_opens: Count
    mode: str | UnsetType = UNSET  # it would show which jobs are of a user who has a mode
    user: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    command: str | UnsetType = UNSET


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A second: what moved, and how many waited."""

    time: float
    io_nodes: list[float | None]  # bytes a second by number; None: no answer
    queued: list[int | None]
    direct: float
    transferring: Count
    waiting: Count


class NodeNow(msgspec.Struct, frozen=True, kw_only=True):
    """An I/O node as it was at the last sample."""

    number: Count
    state: str
    alive: bool
    deaths: Count
    jobs: list[str]  # the first ones
    job_count: Count
    scheduler: str | None
    queued: Count | None
    operation: str | None
    pattern: str | None
    tuned: dict[str, int | float | str]


class UserNow(msgspec.Struct, frozen=True, kw_only=True):
    """What a user's jobs do, those that ended of late included."""

    user: str
    jobs: Count  # that run
    forwarded_bytes: Count
    direct_bytes: Count
    rate: float
    waited_seconds: float


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """What changed since a cursor; `whole`: all that is kept, and what was told before is void."""

    cursor: str
    whole: bool
    now: float
    window: float
    known_since: float  # what was before is not known: no stretch there does not mean it computed
    site: str
    policy: str
    mode: str
    kill_switch: bool
    emulated: bool
    turns: Count
    fail_opens: Count
    policy_failures: Count
    forwarded_bytes: Count
    direct_bytes: Count
    gone: list[str]
    samples: list[Sample]
    io_nodes: list[NodeNow]
    jobs: list[LaneJob] = []
    stretches: list[Stretch] = []
    users: list[UserNow] | UnsetType = UNSET


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the store knows of a job's family: its user's jobs of the same program."""

    w_iter: float | None
    observations: Count
    phase_bytes: float | None
    bandwidth: float | None
    curve: dict[str, float]  # bytes a second by number of I/O nodes


class JobPhases(msgspec.Struct, frozen=True, kw_only=True):
    """A job and its last phases, the oldest first; the last may still be under way."""

    job: LaneJob
    phases: list[Phase]
    w_iter: list[tuple[float, float]]
    pattern: list[tuple[float, str]]
    known: Known | None


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """What is tuned, and the values that are tried."""

    name: str
    values: list[int | float | str]
    default: int | float | str


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """What was learnt of a value in a context; `reward` is in bytes a busy second."""

    context: str
    parameter: str
    value: int | float | str
    chosen: float  # how often, those that are forgotten left out
    reward: float | None


class TuningNow(msgspec.Struct, frozen=True, kw_only=True):
    """What is tuned; `policy` is None where nothing is."""

    policy: str | None
    applied: bool = False
    rounds: Count = 0
    explored: Count = 0
    contexts: Count = 0
    parameters: list[Parameter] = []
    arms: list[Arm] = []
    history: list[tuple[float, int, str, int | float | str, bool]] = []
    """Time, I/O node, parameter, value, whether it was being tried."""
    left_out: Count = 0
    """Arms beyond those that are told."""
