"""The answers for the dashboard; handlers return these types, and the OpenAPI document has them.

Times are seconds since the epoch. A field that may be missing is for clients with a token.
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.live.http.dashboard.lanes import Kind, PhaseRecord
from penstock.live.protocol.job_record import Count, JobSummary, ZeroBytes

Share = Annotated[float, Meta(ge=0, le=1)]
Stretch = tuple[str, Kind, float, float | None, Share]
"""An interval of a job: its id, kind, start, end (None: it goes on) and mean share."""


class LaneJob(JobSummary, frozen=True, kw_only=True):
    """A job of the timeline: its public record, and what its lane shows.

    For clients with a token, `state` of a job whose exit status is not 0 is failed.
    """

    serial: Count
    ended: float | None
    nodes: Count
    processes: Count | None
    doing: str  # computing, transferring, waiting, would wait; or the state of one that ended
    since: float
    share: Share  # granted
    received: Share | None  # as in JobRecord
    turn_waited_seconds: float  # waits that were enforced
    behind: list[str]  # the next jobs ahead of it
    ahead: Count  # the number of all jobs ahead of it
    at_most_seconds: float | None
    w_iter: float | None
    pattern: str | None
    rate: float  # bytes per second
    mode: str | UnsetType = UNSET  # it would tell apart the jobs of a user with a mode
    user: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    command: str | UnsetType = UNSET
    zero_bytes_reason: ZeroBytes | UnsetType | None = UNSET  # as in JobRecord


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One second: rates, queues, and how many jobs transfer and wait."""

    time: float
    io_nodes: list[float | None]  # bytes per second by number; None: no answer
    queued: list[int | None]
    direct: float  # bytes per second
    transferring: Count
    waiting: Count


class NodeNow(msgspec.Struct, frozen=True, kw_only=True):
    """An I/O node at the last sample."""

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


class UserNow(msgspec.Struct):
    """Sums over a user's jobs, including those that ended recently."""

    user: str
    jobs: Count  # running
    forwarded_bytes: Count
    direct_bytes: Count
    rate: float
    waited_seconds: float


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """What changed since a cursor; `whole`: everything, which replaces all earlier answers."""

    cursor: str
    whole: bool
    now: float
    window: float
    known_since: float  # earlier, a job without an interval need not have computed
    site: str
    policy: str
    scope: str  # sharing.scope: what turns are taken on
    file_systems: list[str]  # by name
    mode: str
    bandwidth: float | None  # site.bandwidth, in bytes per second
    kill_switch: bool
    emulated: bool
    tuned: bool  # with --tune, I/O nodes detect access patterns
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


class Application(msgspec.Struct, frozen=True, kw_only=True):
    """What the store knows of a job's application: its user's jobs of the same program."""

    w_iter: float | None
    observations: Count
    phase_bytes: float | None
    compute_seconds: float | None  # per phase
    curve: dict[str, float]  # bytes per second by number of I/O nodes


class JobPhases(msgspec.Struct, frozen=True, kw_only=True):
    """A job and its last phases, oldest first; the last one may not be over."""

    job: LaneJob
    phases: list[PhaseRecord]
    w_iter: list[tuple[float, float]]
    pattern: list[tuple[float, str]]
    known: Application | None


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A tuned parameter and its candidate values."""

    name: str
    values: list[int | float | str]
    default: int | float | str


class CandidateValue(msgspec.Struct, frozen=True, kw_only=True):
    """What was learned of a value for an access pattern; `reward` is in bytes per busy second."""

    context: str  # the access pattern
    parameter: str
    value: int | float | str
    chosen: float  # how often, without choices that are forgotten
    reward: float | None


class TuningNow(msgspec.Struct, frozen=True, kw_only=True):
    """The tuned parameters; `policy` is None if nothing is tuned."""

    policy: str | None
    applied: bool = False
    rounds: Count = 0
    explored: Count = 0
    contexts: Count = 0
    parameters: list[Parameter] = []
    arms: list[CandidateValue] = []
    history: list[tuple[float, int, str, int | float | str, bool]] = []
    """Time, I/O node, parameter, value, whether it was chosen to explore."""
    left_out: Count = 0
    """Candidate values beyond those listed."""
    not_shown: list[str] = []
    """Parameters whose tuner keeps what it learned in a form that cannot be shown."""
