"""What a measurement and the launchers on its hosts say to each other: JSON in frames, over TCP.

Every message to a launcher has one answer. While ranks run, their barrier uses the same connection
(host_ranks.py). Both ends prove the site key of the measurement's deployment first, and seal what
they say from then on; only the words of the barrier are plain.
"""

from multiprocessing.connection import Connection
from typing import Any, Self, TypeVar

import msgspec

from penstock.live.measure.rank import Plan, RankResult
from penstock.live.protocol import messages
from penstock.live.protocol.seal import Seals
from penstock.model import Observation

M = TypeVar("M", bound="HostMessage")


class HostMessage(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of all messages."""


class Introduction(HostMessage, frozen=True, kw_only=True):
    """On a launcher's standard input: where the measurement listens, and the key in hex."""

    host: str  # where srun does not say
    port: int
    key: str


class Hello(HostMessage, frozen=True, kw_only=True):
    """From a launcher, once both ends have proven the key: the name of its host."""

    host: str


class Done(HostMessage, frozen=True, kw_only=True):
    """The answer to a message that asks for nothing."""


class Failed(HostMessage, frozen=True, kw_only=True):
    """The answer to a message that could not be followed."""

    error: str
    wrong_input: bool = False


class CheckRoot(HostMessage, frozen=True, kw_only=True):
    """Read a file that the measurement has just written below its root. Answer: Done."""

    file: str
    content: str


class StartIoNodes(HostMessage, frozen=True, kw_only=True):
    """Start these I/O nodes. Answer: IoNodesServe."""

    numbers: list[int]
    controller_port: int
    root: str
    coherent: bool
    serves_within: float


class IoNodesServe(HostMessage, frozen=True, kw_only=True):
    """The addresses of a host's I/O nodes, by number, as HOST:PORT."""

    addresses: dict[int, str]


class Configure(HostMessage, frozen=True, kw_only=True):
    """Change the settings of the host's I/O nodes. Answer: Done."""

    settings: messages.Settings


class Watch(HostMessage, frozen=True, kw_only=True):
    """Begin to watch the host's I/O nodes, at an interval unless it is 0. Answer: Done."""

    interval: float = 0.0


class EndWatch(HostMessage, frozen=True, kw_only=True):
    """End that. Answer: Watched."""


class Watched(HostMessage, frozen=True, kw_only=True):
    """What the I/O nodes of a host counted and observed, by number."""

    before: dict[int, messages.NodeCounters]
    after: dict[int, messages.NodeCounters]
    observations: dict[int, list[Observation]]


class RunRanks(HostMessage, frozen=True, kw_only=True):
    """Run these ranks of a plan as a member of a job. Answer: RanksEnded."""

    plan: Plan
    ranks: list[int]
    wanted: list[int]  # the I/O node of each of them, in their order; empty: any
    name: str
    team: str
    io_nodes: int
    controller_port: int


class RanksEnded(HostMessage, frozen=True, kw_only=True):
    """What the ranks of a host did; times are the measurement's, by its monotonic clock."""

    status: int
    counters: dict[str, int]
    results: dict[int, RankResult]
    reads_to_connect: dict[int, int] = {}  # by I/O node


ToLauncher = CheckRoot | StartIoNodes | Configure | Watch | EndWatch | RunRanks


class SealedConnection:
    """A connection between ends that have proven the key; a context manager."""

    def __init__(self, connection: Connection, seals: Seals) -> None:
        self.connection = connection
        self.seals = seals

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def send(self, message: HostMessage) -> None:
        """Send a message."""
        self.connection.send_bytes(self.seals.sent.seal(encode(message)))

    def decode(self, text: bytes, kind: Any) -> Any:
        """Decode a message, or raise ConnectionError if it is not the next one of the other end."""
        return decode(self.seals.received.open(text), kind)


def encode(message: msgspec.Struct) -> bytes:
    """Encode a message."""
    return msgspec.json.encode(message)


def send(connection: Connection, message: msgspec.Struct) -> None:
    """Send a message of the proof."""
    connection.send_bytes(encode(message))


def receive(connection: Connection, kind: Any) -> Any:
    """Return the next message of the proof; EOFError or OSError: the other end is gone."""
    return decode(connection.recv_bytes(), kind)


def decode(text: bytes, kind: Any) -> Any:
    """Decode a message, or raise ConnectionError."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConnectionError(f"invalid message: {error}") from error
