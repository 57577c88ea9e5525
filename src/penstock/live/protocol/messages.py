"""The control messages: one JSON object a line, each answered by one line unless it says otherwise.

Neighbouring versions work together: a field that is not known is passed over, one that is not said
has its default, and nothing is asked of who has an older PROTOCOL than the message.

What the data travels in is another thing: `native/common/wire.h`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from penstock.io_node_settings import IoNodeSettings

if TYPE_CHECKING:
    from penstock.model import Observation

PROTOCOL = 2
"""Rises with every message that an older reader would not understand."""
Positive = Annotated[int, Meta(gt=0)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Counts = Annotated[dict[Annotated[str, Meta(max_length=40)], Count], Meta(max_length=64)]
"""A job's counters: its own word, so bounded."""
Claim = Annotated[float, Meta(gt=0, le=1e18)]
JobName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,39}\Z")]
Seconds = Annotated[float, Meta(ge=0, le=1e11)]
"""Since the epoch."""
ExitStatus = Annotated[int, Meta(ge=0, le=255)]
"""As shells have it: 128 and the number of a signal that ended the job."""
ProcessId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
NONCE_BYTES = 32
Nonce = Annotated[str, Meta(pattern=rf"^[0-9a-f]{{{2 * NONCE_BYTES}}}\Z")]


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What one process tells another."""


class Failed(Message, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to what could not be done."""

    error: str
    full: bool = False  # for want of room: a job runs all the same, but not as one
    wrong_input: bool = False  # whoever asked has to ask otherwise; trying again is of no use


class Done(Message, frozen=True, kw_only=True, omit_defaults=True):
    """The answer where nothing else is to be said, but perhaps a word of advice."""

    advice: str = ""


# Between hosts: who connects over TCP proves the site key before anything else; docs/live/hosts.md.


class Challenge(Message, frozen=True, kw_only=True):
    """From the controller, first on a connection: a number that was never used. Answer: Proof."""

    nonce: Nonce


class Proof(Message, frozen=True, kw_only=True):
    """That the key is known, of both numbers; the controller answers with its own, or Failed."""

    nonce: Nonce
    proof: str


# To an I/O node, from the controller or a person.


class Settings(Message, IoNodeSettings, frozen=True, kw_only=True):
    """Change how an I/O node serves requests; None leaves a setting as it is. Answer: Done."""


class Weigh(Message, frozen=True, kw_only=True):
    """Give groups (jobs, by name) their weights; others have weight 1. Answer: Done.

    An I/O node that serves all users knows a job as "UID/job", here and in what it measured.
    """

    weights: Mapping[str, float]


class Measure(Message, frozen=True, kw_only=True):
    """Ask an I/O node what it did. Answer: Measured."""


class Observe(Message, frozen=True, kw_only=True):
    """Ask an I/O node what it saw since it was last asked this. Answer: Observed."""


class Observed(Message, frozen=True, kw_only=True):
    """What an I/O node saw, and how it serves."""

    node: int  # its id, as in the shared page's map
    observation: dict[
        str, int | float
    ]  # fields of model.Observation, which is not for all to import
    settings: dict[str, int | float | str]  # in force: scheduler, window, aggregation, depth, ...

    def seen(self) -> "Observation":
        """Return the observation; ConnectionError: it is none."""
        from penstock.model import Observation  # noqa: PLC0415 - NumPy comes with it

        try:
            return msgspec.convert(self.observation, Observation)
        except msgspec.ValidationError as error:
            raise ConnectionError(f"what came is no observation: {error}") from error


class Drain(Message, frozen=True, kw_only=True):
    """Finish what was begun, let go of clients as they fall idle, then end. Answer: Done."""

    seconds: float = 10.0


class Measured(Message, frozen=True, kw_only=True):
    """What an I/O node did since it began."""

    node: int  # its id, as in the shared page's map
    number: int
    scheduler: str
    connections: int
    sessions: int
    files: int
    queued: int
    requests: int
    reads: int
    writes: int
    syncs: int
    read_bytes: int
    write_bytes: int
    batches: int
    aggregated: int  # requests served together with others
    errors: int
    refused: int  # connections and frames
    dropped: int  # requests whose client had gone before they were begun
    groups: dict[str, int] = {}  # bytes by job, named as in Weigh
    in_service: dict[str, int] = {}  # batches by job


# To the controller.


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """Where an I/O node is; `address` is a socket's path, or an IP address."""

    number: int
    id: int
    address: str
    transport: str = "unix"
    port: int = 0
    pid: int = 0
    user: str = ""  # over TCP, the only one whose jobs it serves


class Serving(Message, frozen=True, kw_only=True):
    """An I/O node on another host is there, as long as the connection is. Answer: Done.

    From then on the controller asks on this connection, and the I/O node answers in order.
    """

    node: Node


class Hints(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job's user says of it: a claim, which decides nothing but the order of its phases."""

    volume: Claim | None = None  # bytes of a phase
    period: Claim | None = None  # seconds from one phase to the next, were it alone
    phases: Claim | None = None


class Begin(Message, frozen=True, kw_only=True):
    """`penstock run` begins a job; the connection stays open as long as it runs. Answer: Begun."""

    name: JobName
    pid: ProcessId
    command: list[str]
    user: str
    io_nodes: int | None = None  # as many as it asks for; None: the site's default
    protocol: int = 1
    executable: str = ""
    nodes: Positive = 1  # compute nodes
    processes: Positive | None = None
    resumes: str | None = None  # the id that it has from a controller that is gone
    team: str | None = None  # what the job's agents on other hosts call it too: one turn for all
    hints: Hints = Hints()


class Begun(Message, frozen=True, kw_only=True, omit_defaults=True):
    """The job's id, and its I/O nodes."""

    job: str
    roots: list[str]
    nodes: list[Node]
    stripe: int = 0
    environment: dict[str, str] = {}
    preload: list[str] = []  # libraries below the client library: the emulator's
    above: list[str] = []  # libraries above it
    longest_wait: float = 30.0
    patience: float = 2.0
    mode: str = "observe"  # or advise, or enforce: only then is its gate ever closed
    lease: float = 2.0  # seconds that its gate may stay closed without a Beat
    token: str = ""  # in hex: what lets it in at I/O nodes over TCP
    dirty_window: int = 0  # bytes of a file that are ahead of the storage while enforced; 0: any


class Mapped(Message, frozen=True, kw_only=True):
    """From the controller, unasked: the job's I/O nodes are these from now on."""

    nodes: list[Node]
    stripe: int = 0


# Turns. Only an agent that said PROTOCOL 2 or more takes part; its gate is closed between phases.


class PhaseBegan(Message, frozen=True, kw_only=True, omit_defaults=True):
    """From a job, unanswered: a phase began, and waits for its turn if it is enforced."""

    phase: int  # counted from 1 a job
    bytes: Count | None = None  # that it will move, if its program says so


class PhaseEnded(Message, frozen=True, kw_only=True):
    """From a job, unanswered: the phase is over, `idle` seconds ago."""

    phase: int
    bytes: int
    seconds: float  # from its turn, or its beginning where there was none, to its last call
    waited: float  # seconds for its turn
    idle: float = 0.0
    small: bool = False  # it proved too small to be one


class Turn(Message, frozen=True, kw_only=True):
    """From the controller, unasked: the phase may transfer."""

    phase: int
    weight: float = 1.0
    overdue: bool = False  # out of turn: it waited for longer than anybody shall
    failed: bool = False  # or the policy failed: then overdue is said, too


class Hold(Message, frozen=True, kw_only=True):
    """From the controller, unasked: the phase waits, for these jobs."""

    phase: int
    behind: list[str] = []
    lent: bool = False  # its turn is lent, as it offered: it asks again (PhaseBegan) when it calls


class Slice(Message, frozen=True, kw_only=True):
    """From the controller, unasked: amid its turn, the phase's gate opens or closes for a while."""

    phase: int
    open: bool


class Idle(Message, frozen=True, kw_only=True):
    """From a job, unanswered: nobody wants the slice that it was given."""

    phase: int
    lends: bool = False  # nor its turn for now: a Hold that says lent lets it go to who waits


class Beat(Message, frozen=True, kw_only=True):
    """From the controller, unasked, a few times a lease: it lives, and gates may stay closed."""

    mode: str = "enforce"  # the job's mode from now on


class Counted(Message, frozen=True, kw_only=True):
    """From a running job, unasked and unanswered: its counters, summed over threads."""

    counters: Counts


class Ended(Message, frozen=True, kw_only=True):
    """From a job that ended: its last counters and exit status. Answer: Done."""

    counters: Counts
    status: ExitStatus


class LastWord(Message, frozen=True, kw_only=True):
    """Of a job that ended unheard by any controller: told later, or left as a file. Answer: Done.

    docs/live/turns.md says who is believed.
    """

    job: Annotated[str, Meta(max_length=80)]
    begin: Begin
    began: Seconds
    ended: Seconds
    counters: Counts
    status: ExitStatus


class Remap(Message, frozen=True, kw_only=True):
    """Give a running job these I/O nodes, by number; none is direct. Answer: Done."""

    job: str
    nodes: list[int]
    stripe: int = 0


class Govern(Message, frozen=True, kw_only=True):
    """Change a mode while jobs run: the site's, or a user's. Answer: Done."""

    mode: str
    user: str | None = None


class Ask(Message, frozen=True, kw_only=True):
    """Ask the controller how things are. Answer: Status."""


class Status(Message, frozen=True, kw_only=True):
    """How things are; `penstock status --json` prints it."""

    site: str
    roots: list[str] = []
    emulated: str | None = None  # what is emulated below, as 'penstock up --emulate' was told
    jobs: list[dict[str, object]]
    io_nodes: list[dict[str, object]]
    forwarded_bytes: int
    direct_bytes: int
    fail_open_total: int
    policy: str = ""
    mode: str = "observe"
    modes: dict[str, str] = {}  # of users whose mode is another
    turns: int = 0  # given so far
    tuning: dict[str, object] | None = None  # what the Council does; None: there is none
    refused: int = 0  # connections, jobs and wishes, since the controller began
    policy_failures: int = 0  # times that the policy raised something, or answered nonsense


class Stop(Message, frozen=True, kw_only=True):
    """End: I/O nodes drain first. Answer: Done."""
