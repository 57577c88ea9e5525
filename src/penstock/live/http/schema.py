"""The answers and request bodies of the HTTP API.

The answers are msgspec types: what a handler returns is what `/openapi.json` describes. A field
that may be missing is one that only clients with a token see, or that only some jobs and I/O nodes
have.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.live.controller.status import TurnWaits
from penstock.live.protocol.file_system_record import FileSystemRecord, FileSystemSummary
from penstock.live.protocol.io_node_record import IoNodeRecord, IoNodeSummary
from penstock.live.protocol.job_record import Count, JobRecord, JobSummary, ZeroBytes
from penstock.live.protocol.shared_page import MAP_NODES, SITE_NODES
from penstock.live.protocol.stripe import STRIPE_UNIT

Mode = Literal["observe", "advise", "enforce"]
_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.@-]*$(?!\n)"  # Python's $ also matches before a final newline
Name = Annotated[str, Meta(min_length=1, max_length=64, pattern=_NAME)]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, or a part of one."""


class Explanation(Answer, frozen=True, kw_only=True):
    """Why a job has the I/O nodes, the turn and the share that it has; as in its JobRecord."""

    job: str
    policy: str
    io_nodes: list[int]
    io_nodes_used: list[int]
    bytes_by_io_node: dict[str, Count]
    file_systems: list[str]
    waits_on: list[str]
    bytes_by_file_system: dict[str, Count]
    zero_bytes_reason: ZeroBytes | None
    mode: str | None
    doing: str | None
    since_seconds: float | None
    at_most_seconds: float | None
    behind: list[str]
    ahead: Count
    share: float  # granted
    received: float | None
    group: str | None
    weight: float | None
    w_iter: float | None
    iterations: Count
    phases: Count
    phase_bytes: float | None
    phases_by_mode: dict[str, Count]
    turn_waited_seconds: float | None
    would_have_waited_seconds: float | None
    bandwidth: float | None


class SiteBase(Answer, frozen=True, kw_only=True):
    """The site, as far as anybody may know."""

    site: str
    forwarded_bytes: Count
    carried_bytes: Count
    direct_bytes: Count
    fail_open_total: Count
    policy: str
    scope: str  # sharing.scope: what turns are taken on
    mode: str
    bandwidth: float | None  # site.bandwidth, in bytes per second
    turns: Count
    policy_failures: Count


class SiteSummary(SiteBase, frozen=True, kw_only=True):
    """The site, for clients without a token."""

    jobs: list[JobSummary]
    io_nodes: list[IoNodeSummary]
    file_systems: list[FileSystemSummary]


class SiteRecord(SiteBase, frozen=True, kw_only=True):
    """The site, as `penstock status --json` prints it."""

    jobs: list[JobRecord]
    io_nodes: list[IoNodeRecord]
    file_systems: list[FileSystemRecord]
    roots: list[str]
    emulated: str | None
    modes: dict[str, str]


class Transferring(Answer, frozen=True, kw_only=True):
    """A job whose phase transfers now."""

    job: str
    since: float  # seconds since the epoch
    share: Annotated[float, Meta(ge=0, le=1)]  # granted: of the bandwidth
    received: Annotated[float, Meta(ge=0, le=1)] | None = None  # as in JobRecord
    weight: float = 1.0
    group: str = ""
    file_systems: list[str] = []  # as in JobRecord
    waits_on: list[str] = []
    user: str | UnsetType = UNSET


class Waiting(Answer, frozen=True, kw_only=True):
    """A job whose phase waits for its turn."""

    job: str
    since: float  # seconds since the epoch
    behind: list[str]  # jobs that it waits for, the first ten of them
    ahead: Count = 0  # how many jobs it waits for
    group: str = ""
    waits_on: list[str] = []  # file systems, as in JobRecord
    user: str | UnsetType = UNSET


class Turns(Answer, frozen=True, kw_only=True):
    """The jobs that transfer, with their shares, and the jobs that wait, with those before them."""

    transferring: list[Transferring] = []
    waiting: list[Waiting] = []


class Modes(Answer, frozen=True, kw_only=True):
    """The mode of the site, and of the users that have their own."""

    site: Mode
    kill_switch: bool  # every gate is open, whatever the modes say
    users: dict[str, Mode] | UnsetType = UNSET


class Health(Answer, frozen=True, kw_only=True):
    """Whether the controller is alive, and can serve jobs."""

    live: bool
    ready: bool
    io_nodes: Count
    serving: Count


class SetMode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The mode of the site, or of one user; null removes a user's own mode."""

    mode: Mode | None
    user: Name | None = None

    def __post_init__(self) -> None:
        """Raise ValueError (422) for null without a user."""
        if self.mode is None and self.user is None:
            raise ValueError("mode null needs a user: it removes that user's own mode")


MODE_OR_USER = Meta(
    extra_json_schema={
        "anyOf": [
            {"properties": {"mode": {"type": "string"}}},
            {"properties": {"user": {"type": "string"}}, "required": ["user"]},
        ]
    }
)
"""What SetMode checks, for the OpenAPI document."""


class SetKillSwitch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """On: every gate opens, and stays open until the switch is off."""

    on: bool


class SetIoNodes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The numbers of the I/O nodes that a job has from now on; an empty list is direct."""

    nodes: Annotated[
        list[Annotated[int, Meta(ge=0, lt=SITE_NODES)]],
        Meta(max_length=MAP_NODES, extra_json_schema={"uniqueItems": True}),
    ]
    stripe: Annotated[
        int, Meta(ge=0, le=1 << 40, multiple_of=STRIPE_UNIT, description="Bytes; 0: none.")
    ] = 0


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller counts beside its status, since it started; no value ever falls."""

    fail_opens: dict[str, int] = {}  # by reason; their sum is the status's fail_open_total
    throttled_seconds: dict[str, float] = {}  # by user
    turn_waits: TurnWaits = msgspec.field(default_factory=TurnWaits)
    store_failures: int = 0
    record_lost: int = 0  # events
    record_failures: int = 0
