"""The control messages: one JSON object per line, each answered by one line unless noted.

Every process of a site speaks them. Neighbouring versions work together: a reader ignores unknown
fields, a missing field has its default, and no process receives a message that is newer than the
PROTOCOL it announced. The tag (`type` in JSON) is part of the protocol; class names are not.

The data plane has a format of its own: `native/common/wire.h`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from penstock.identities import MOST_FILE_SYSTEMS, FileSystemId
from penstock.io_node_settings import IoNodeSettings
from penstock.learn.imported import MOST_IMPORTED, ImportedApplication
from penstock.learn.observations import LONGEST
from penstock.live.protocol.application_record import ApplicationRecord
from penstock.live.protocol.file_system_record import FileSystemRecord
from penstock.live.protocol.io_node_record import AllocationStatus, IoNodeRecord, TuningStatus
from penstock.live.protocol.job_record import JobRecord

if TYPE_CHECKING:
    from penstock.model import Observation

PROTOCOL = 2
"""Increases with every message that an older reader would not understand."""
Positive = Annotated[int, Meta(gt=0, le=2**31 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Counts = Annotated[dict[Annotated[str, Meta(max_length=40)], Count], Meta(max_length=64)]
"""A job's counters: untrusted input, so bounded."""
FileSystemNumber = Annotated[FileSystemId, Meta(ge=0, lt=MOST_FILE_SYSTEMS)]
FileSystemNumbers = Annotated[list[FileSystemNumber], Meta(max_length=MOST_FILE_SYSTEMS)]
IoNodeNumber = Annotated[str, Meta(pattern=r"^[0-9]{1,4}\Z")]
Hint = Annotated[float, Meta(gt=0, le=1e18)]
UserName = Annotated[str, Meta(max_length=256)]
Application = Annotated[str, Meta(max_length=512)]
"""The name of an application; agents send `penstock.learn.applications.bounded` ones."""
LONGEST_PARTITION = 256
Partition = Annotated[str, Meta(max_length=LONGEST_PARTITION)]
"""A partition of the batch system, as the job's environment says; empty: none."""
JobName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,39}\Z")]
ShortText = Annotated[str, Meta(max_length=256)]
PathText = Annotated[str, Meta(pattern=r"^[^\x00]*\Z", max_length=4096)]
NumberedJob = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,62}\Z")]
"""A job's name and serial number: files are named after it."""
Seconds = Annotated[float, Meta(ge=0, le=1e11)]
"""Since the epoch."""
Duration = Annotated[float, Meta(ge=0, le=LONGEST)]
"""Seconds: agents are not trusted, and no sum of such numbers may be infinite."""
Limit = Annotated[float, Meta(ge=0, le=1e9)]
"""Seconds that a controller sets: a job applies no others."""
ExitStatus = Annotated[int, Meta(ge=0, le=255)]
"""As in shells: 128 plus the number of the signal that ended the job."""
ProcessId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
COUNTER_INTERVAL = 1.0
"""Seconds between two reports of a job's counters."""
NONCE_BYTES = 32
Nonce = Annotated[str, Meta(pattern=rf"^[0-9a-f]{{{2 * NONCE_BYTES}}}\Z")]


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of all control messages."""


def decode(text: bytes, kind: Any) -> Any:
    """Decode a message; msgspec.DecodeError: it is none of this type, nor JSON, or too deep."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (RecursionError, UnicodeDecodeError) as error:
        raise msgspec.DecodeError(str(error)) from error


class Failure(Message, frozen=True, kw_only=True, omit_defaults=True, tag="Failed"):
    """The answer to a request that could not be fulfilled."""

    error: str
    full: bool = False  # the controller has no room: the job runs unmanaged
    wrong_input: bool = False  # the request is invalid; sending it again does not help


class Done(Message, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a fulfilled request, with advice for the user where there is any."""

    advice: str = ""


# Between hosts: over TCP, both ends prove a key first; docs/live/hosts.md.


class Challenge(Message, frozen=True, kw_only=True):
    """From the controller, first on a connection: a number that was never used. Answer: Proof."""

    nonce: Nonce


class Proof(Message, frozen=True, kw_only=True):
    """Proof of a key over both nonces; the controller answers with its own, or Failure."""

    nonce: Nonce
    proof: str
    user: UserName = ""  # whose key; empty: the site's


# To an I/O node, from the controller or an administrator.


class Settings(Message, IoNodeSettings, frozen=True, kw_only=True):
    """Change how an I/O node serves requests; None leaves a setting as it is. Answer: Done."""

    def given(self) -> dict[str, Any]:
        """Return the settings that are not None."""
        fields = msgspec.structs.asdict(self)
        return {name: value for name, value in fields.items() if value is not None}


class SetWeights(Message, frozen=True, kw_only=True, tag="Weigh"):
    """Set the weights of groups (jobs, by name); any other group has weight 1. Answer: Done.

    An I/O node that serves all users names a job "UID/job", here and in its counters.
    """

    weights: Mapping[str, float]


class GetCounters(Message, frozen=True, kw_only=True, tag="Measure"):
    """Ask an I/O node for its counters. Answer: NodeCounters."""


class GetObservation(Message, frozen=True, kw_only=True, tag="Observe"):
    """Ask an I/O node what it observed since the last such message. Answer: NodeObservation."""


class NodeObservation(Message, frozen=True, kw_only=True, tag="Observed"):
    """What an I/O node observed, and the settings in force."""

    node: int  # its id, as in the map of the shared page
    observation: dict[str, int | float]
    """Fields of model.Observation; a dict, because importing the model imports NumPy."""
    settings: dict[str, int | float | str]
    jobs: dict[str, int] = {}  # bytes by job since it started, named as in SetWeights

    def to_observation(self) -> "Observation":
        """Return the observation, or raise ConnectionError if it is not valid."""
        from penstock.model import Observation  # noqa: PLC0415 - NumPy comes with it

        try:
            return msgspec.convert(self.observation, Observation)
        except msgspec.ValidationError as error:
            raise ConnectionError(f"invalid observation: {error}") from error


class Drain(Message, frozen=True, kw_only=True):
    """Finish all accepted requests, disconnect idle clients, then end. Answer: Done."""

    seconds: float = 10.0


class NodeCounters(Message, frozen=True, kw_only=True, tag="Measured"):
    """The counters of an I/O node since it started."""

    node: int  # its id, as in the map of the shared page
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
    dropped: int  # requests whose client disconnected before they were started
    groups: dict[str, int] = {}  # bytes by job, named as in SetWeights
    in_service: dict[str, int] = {}  # batches by job


# To the controller.


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """Where an I/O node serves; `address` is the path of a socket, or an IP address."""

    number: int
    id: int
    address: str
    transport: str = "unix"
    port: int = 0
    pid: int = 0
    user: str = ""  # over TCP, the only user whose jobs it serves


class RegisterNode(Message, frozen=True, kw_only=True, tag="Serving"):
    """An I/O node of another host registers for as long as the connection lasts. Answer: Done.

    From then on the controller sends requests on this connection; the I/O node answers in order.
    """

    node: Node


class Hints(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a user claims about a job: for the order of its phases, and its first I/O nodes."""

    volume: Hint | None = None  # bytes per phase
    period: Hint | None = None  # seconds from one phase to the next when the job runs alone
    phases: Hint | None = None
    pattern: Annotated[str, Meta(max_length=40)] | None = None  # one of model.observation.PATTERNS
    request: Hint | None = None  # bytes of a request


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a job's data went; an agent of an older version does not say."""

    io_nodes: Annotated[dict[IoNodeNumber, Count], Meta(max_length=1024)] = {}  # bytes by number
    file_systems: Annotated[dict[Annotated[str, Meta(pattern=r"^[0-7]\Z")], Count], Meta()] = {}
    """Bytes by the number of the file system."""
    directories: Annotated[list[Annotated[str, Meta(max_length=256)]], Meta(max_length=8)] = []
    """The first directories outside the roots in which it opened files for writing."""


class BeginJob(Message, frozen=True, kw_only=True, tag="Begin"):
    """A job begins; the connection stays open while it runs. Answer: JobAccepted."""

    name: JobName
    pid: ProcessId
    command: list[str]
    user: UserName
    io_nodes: int | None = None  # how many it asks for; None: the site's default
    protocol: int = 1
    executable: Application = ""  # of the user, the batch system, or found in the command
    nodes: Positive = 1  # compute nodes
    processes: Positive | None = None
    partition: Partition = ""
    resumes: ShortText | None = None  # its id at a controller that is gone
    counters: Counts = {}  # of a job that resumes, so far
    usage: Usage = Usage()  # the same
    team: ShortText | None = None  # shared by its agents on several hosts: one turn for all of them
    hints: Hints = Hints()


class JobAccepted(Message, frozen=True, kw_only=True, omit_defaults=True, tag="Begun"):
    """The job's id, its I/O nodes, and the limits that its agent applies."""

    job: NumberedJob
    roots: list[PathText]
    file_systems: FileSystemNumbers = []
    """The file system of each root; empty: all are on one."""
    nodes: list[Node]
    stripe: Count = 0
    environment: dict[str, str] = {}
    preload: list[str] = []  # libraries below the client library: the emulator's
    above: list[str] = []  # libraries above the client library
    longest_wait: Limit = 30.0
    patience: Limit = 2.0
    mode: str = "observe"  # "observe", "advise" or "enforce"; only "enforce" closes its gate
    lease: Limit = 2.0  # seconds that its gate may stay closed without a Heartbeat
    token: Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?\Z")] = (
        ""  # hexadecimal: what I/O nodes require over TCP
    )
    dirty_window: Annotated[int, Meta(ge=0, lt=2**32)] = (
        0  # maximum unwritten bytes per file while enforced; 0: unlimited
    )


class NodeMap(Message, frozen=True, kw_only=True, tag="Mapped"):
    """From the controller, unasked: the job uses these I/O nodes from now on."""

    nodes: list[Node]
    stripe: Count = 0


# Turns. An agent takes part from PROTOCOL 2 on; its gate is closed between phases.


class PhaseBegan(Message, frozen=True, kw_only=True, omit_defaults=True):
    """From a job, unanswered: a phase began; in "enforce" it waits for its turn.

    Sent again, with the same number, when the phase uses another file system.
    """

    phase: Count  # from 1 for each job
    bytes: Count | None = None  # that it will transfer, if the program announced it
    transferring: Duration | None = None
    """Seconds for which it has been transferring: it began under an earlier controller."""
    file_systems: FileSystemNumbers | None = None
    """Those that it uses. None: an older agent, which does not say, or a site with one."""


class PhaseEnded(Message, frozen=True, kw_only=True):
    """From a job, unanswered: the phase ended `idle` seconds ago."""

    phase: Count
    bytes: Count  # a record with more could not be read
    seconds: Duration  # from its turn, or from its beginning if it had no turn, to its last call
    waited: Duration  # seconds for its turn
    idle: Duration = 0.0
    small: bool = False  # it turned out too small to count as a phase


class Turn(Message, frozen=True, kw_only=True):
    """From the controller, unasked: the phase may transfer."""

    phase: int
    weight: float = 1.0
    overdue: bool = False  # out of order: it had waited for the maximum time
    failed: bool = False  # out of order: the policy failed; `overdue` is set too
    file_systems: FileSystemNumbers | None = None
    """Those on which it may; on its others it waits. None: on all."""


class Hold(Message, frozen=True, kw_only=True):
    """From the controller, unasked: the phase waits for its turn."""

    phase: int
    turn_lent: bool = msgspec.field(default=False, name="lent")
    """The turn that it offered (Idle) is lent; it sends PhaseBegan again at its next call."""


class Slice(Message, frozen=True, kw_only=True):
    """From the controller, unasked: during its turn, the gate opens or closes for a while."""

    phase: int
    open: bool
    file_system: FileSystemNumber | None = None  # whose gate; None: a site with one


class Idle(Message, frozen=True, kw_only=True):
    """From a job, unanswered: it does not use the slice that it has."""

    phase: Count
    file_system: FileSystemNumber | None = None  # of the slice
    lends: bool = False  # it also offers its turn: the controller may answer with Hold


class Heartbeat(Message, frozen=True, kw_only=True, tag="Beat"):
    """From the controller, several times per lease: it is alive, so gates may stay closed."""

    mode: str = "enforce"  # the job's mode from now on


class JobCounters(Message, frozen=True, kw_only=True, omit_defaults=True, tag="Counted"):
    """From a running job, unasked and unanswered: its counters, summed over threads."""

    counters: Counts
    usage: Usage = Usage()


class JobExit(Message, frozen=True, kw_only=True, tag="Ended"):
    """From a job that ended: its last counters and exit status. Answer: Done."""

    counters: Counts
    status: ExitStatus
    usage: Usage = Usage()


class UnreportedExit(Message, frozen=True, kw_only=True, tag="LastWord"):
    """The exit of a job that no controller received: sent later, or left as a file. Answer: Done.

    docs/live/turns.md says whose reports the controller accepts.
    """

    job: Annotated[str, Meta(max_length=80)]
    begin: BeginJob
    began: Seconds
    ended: Seconds
    counters: Counts
    status: ExitStatus
    usage: Usage = Usage()


class Remap(Message, frozen=True, kw_only=True):
    """Give a running job these I/O nodes, by number; an empty list is direct. Answer: Done."""

    job: str
    nodes: list[int]
    stripe: Count = 0


class SetMode(Message, frozen=True, kw_only=True, tag="Govern"):
    """Change the mode of the site, or of a user, while jobs run. Answer: Done."""

    mode: str
    user: str | None = None


class GetStatus(Message, frozen=True, kw_only=True, tag="Ask"):
    """Ask the controller for the state of the site. Answer: Status."""


class Status(Message, frozen=True, kw_only=True):
    """The state of the site; `penstock status --json` prints it."""

    site: str
    roots: list[str] = []
    emulated: str | None = None  # the argument of 'penstock up --emulate'
    jobs: list[JobRecord]
    io_nodes: list[IoNodeRecord]
    file_systems: list[FileSystemRecord] = []
    forwarded_bytes: int
    carried_bytes: int = 0  # of those, through I/O nodes of other hosts, or emulated ones
    direct_bytes: int
    fail_open_total: int
    policy: str = ""
    scope: str = "file-system"  # sharing.scope: what turns are taken on
    mode: str = "observe"
    bandwidth: float | None = None  # site.bandwidth, in bytes per second, if it is set
    modes: dict[str, str] = {}  # of users with a mode of their own
    turns: int = 0  # granted so far
    tuning: TuningStatus | None = None  # None: nothing is tuned
    allocation: AllocationStatus | None = None  # None: jobs have what they ask for, or all
    directories: dict[str, list[str]] = {}
    """By job: where it wrote outside the roots; of jobs whose paths the requester may know."""
    refused: int = 0  # connections, jobs and requests since the controller started
    policy_failures: int = 0  # times that a policy raised an exception or gave invalid answers
    dropped_observations: int = 0  # of phases whose figures cannot be true


class GetApplications(Message, frozen=True, kw_only=True):
    """Ask what is known of applications. Answer: Applications, from number `first` of the list on.

    The list is that of the first such message of a connection with `first` = 0.
    """

    first: Count = 0
    user: str | None = None  # None: all that the requester may see


class Applications(Message, frozen=True, kw_only=True):
    """A part of what is known; `next` is the number of the first that is missing."""

    applications: list[ApplicationRecord]
    next: int | None = None


class ImportKnowledge(Message, frozen=True, kw_only=True):
    """Add what a file says of applications: of all, or of none. Answer: Done."""

    applications: Annotated[list[ImportedApplication], Meta(max_length=MOST_IMPORTED)]


class ForgetApplications(Message, frozen=True, kw_only=True):
    """Remove what is known of a user's applications. Answer: Forgotten."""

    user: str
    application: str | None = None  # None: of all
    nodes: Positive | None = None  # None: of all sizes


class Forgotten(Message, frozen=True, kw_only=True):
    """How many applications were removed."""

    applications: int


class Stop(Message, frozen=True, kw_only=True):
    """End the controller, after its I/O nodes have drained. Answer: Done."""
