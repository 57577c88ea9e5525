"""What the HTTP API asks of a controller, and the answers it gives to the world.

The answers are msgspec types, so that one definition is the code and the OpenAPI document. A field
that may be left out is one that only a token opens, or that only some can tell.
"""

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.live.controller.wait_histogram import TurnWaits
from penstock.live.http.dashboard.schema import JobPhases, TuningNow
from penstock.live.http.policy_list import PolicyChoice
from penstock.live.http.record_list import RecordedRun
from penstock.live.protocol import messages
from penstock.live.protocol.job_record import JobRecord
from penstock.live.protocol.shared_page import MAP_NODES

if TYPE_CHECKING:
    from penstock.live.http.what_if_runs import AskWhatIf

Mode = Literal["observe", "advise", "enforce"]
Count = Annotated[int, Meta(ge=0)]
_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.@-]*$(?!\n)"  # Python's $ is also before a last line's end
Name = Annotated[str, Meta(min_length=1, max_length=64, pattern=_NAME)]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an answer."""


class IoNodeAnswer(Answer, frozen=True, kw_only=True):
    """An I/O node, and what it measured if it answers."""

    number: Count
    alive: bool
    state: str
    deaths: Count
    jobs: list[str]
    scheduler: str | UnsetType = UNSET
    connections: Count | UnsetType = UNSET
    queued: Count | UnsetType = UNSET
    requests: Count | UnsetType = UNSET
    read_bytes: Count | UnsetType = UNSET
    write_bytes: Count | UnsetType = UNSET
    errors: Count | UnsetType = UNSET
    refused: Count | UnsetType = UNSET
    silent_seconds: float | UnsetType = UNSET
    why: str | UnsetType = UNSET
    pid: int | UnsetType | None = UNSET
    groups: dict[str, int] | UnsetType = UNSET


class SiteAnswer(Answer, frozen=True, kw_only=True):
    """How things are, as `penstock status --json` prints it."""

    site: str
    jobs: list[JobRecord]
    io_nodes: list[IoNodeAnswer]
    forwarded_bytes: Count
    direct_bytes: Count
    fail_open_total: Count
    roots: list[str] | UnsetType = UNSET
    emulated: str | UnsetType | None = UNSET
    policy: str | UnsetType = UNSET
    mode: str | UnsetType = UNSET
    turns: Count | UnsetType = UNSET
    policy_failures: Count | UnsetType = UNSET
    modes: dict[str, str] | UnsetType = UNSET


class Transferring(Answer, frozen=True, kw_only=True):
    """A job whose phase transfers now."""

    job: str
    since: float  # seconds since the epoch
    share: Annotated[float, Meta(ge=0, le=1)]  # of the bandwidth
    weight: float = 1.0
    group: str = ""
    user: str | UnsetType = UNSET


class Waiting(Answer, frozen=True, kw_only=True):
    """A job whose phase waits for its turn."""

    job: str
    since: float  # seconds since the epoch
    behind: list[str]  # jobs that it waits for
    group: str = ""
    user: str | UnsetType = UNSET


class Turns(Answer, frozen=True, kw_only=True):
    """Who transfers, who waits, for whom, since when, at what share."""

    transferring: list[Transferring] = []
    waiting: list[Waiting] = []


class Modes(Answer, frozen=True, kw_only=True):
    """How far the controller goes: on the site, and for users of whom it was told otherwise."""

    site: Mode
    kill_switch: bool  # every gate is open, whatever the modes say
    users: dict[str, Mode] | UnsetType = UNSET


class Health(Answer, frozen=True, kw_only=True):
    """Whether the controller lives, and can serve jobs."""

    live: bool
    ready: bool
    io_nodes: Count
    serving: Count


class SetMode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The mode of the site, or of one user; null lets a user go by the site's again."""

    mode: Mode | None
    user: Name | None = None


class SetKillSwitch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """On: every gate opens, and stays open until it is off."""

    on: bool


class SetIoNodes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The I/O nodes that a job has from now on, by number; none is direct."""

    nodes: Annotated[
        list[Annotated[int, Meta(ge=0, lt=MAP_NODES)]],
        Meta(max_length=MAP_NODES, extra_json_schema={"uniqueItems": True}),
    ]
    stripe: Annotated[int, Meta(ge=0, le=1 << 40)] = 0  # bytes


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller counts beside its status; all since it began, and never less than before.

    `turn_waits` is read and not kept, so it may be the controller's own.
    """

    fail_opens: dict[str, int] = {}  # by reason, adding up to the status's fail_open_total
    throttled_seconds: dict[str, float] = {}  # by user
    turn_waits: TurnWaits = msgspec.field(default_factory=TurnWaits)
    store_failures: int = 0
    record_lost: int = 0  # events
    record_failures: int = 0


class Dashboard(Protocol):
    """What the dashboard asks of a controller; `named`: with what is the users' own."""

    def serving(self) -> AbstractAsyncContextManager[None]:
        """Keep a history as long as the block goes on."""
        ...

    async def timeline(self, since: str | None, *, named: bool) -> bytes:
        """Return what changed since a cursor, as JSON."""
        ...

    async def phases(self, job: str, *, named: bool) -> JobPhases:
        """Return a job's last phases."""
        ...

    async def tuning(self) -> TuningNow:
        """Return what is tuned, and what was learnt."""
        ...

    async def policies(self) -> list[PolicyChoice]:
        """Return the policies that a what-if can take."""
        ...

    async def records(self) -> list[RecordedRun]:
        """Return the records that there are, the newest first."""
        ...

    async def start_what_if(self, wanted: "AskWhatIf") -> str:
        """Begin a simulation and return its id."""
        ...

    async def what_if(self, id: str) -> bytes:
        """Return how a what-if stands, as JSON."""
        ...

    async def cancel_what_if(self, id: str) -> bytes:
        """End a what-if."""
        ...


class Service(Protocol):
    """A controller, as the API needs it. NotFoundError and ConflictError become 404 and 409."""

    dashboard: Dashboard

    async def status(self) -> messages.Status:
        """Return how things are."""
        ...

    async def job(self, job: str) -> JobRecord:
        """Return one job of the status, by its id."""
        ...

    async def explain(self, job: str) -> dict[str, Any]:
        """Return why a job has the I/O nodes, the turn and the share that it has."""
        ...

    async def remap(self, remap: messages.Remap) -> None:
        """Give a running job other I/O nodes; return when it has them."""
        ...

    async def modes(self) -> Modes:
        """Return the modes that are in force."""
        ...

    async def set_mode(self, user: str | None, mode: Mode | None) -> None:
        """Set the mode of the site (no user) or of a user, who without one has the site's."""
        ...

    async def kill_switch(self, on: bool) -> None:
        """Open every gate, or let turns be enforced again."""
        ...

    async def waiting(self) -> Turns:
        """Return who transfers and who waits."""
        ...

    async def measures(self) -> Measures:
        """Return what `/metrics` has beside the status."""
        ...
