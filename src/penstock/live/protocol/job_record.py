"""The record of a job for people, and sums over its counters.

The job table, the store, `status --json` and the HTTP API have it; policies see a
`penstock.model.Job`.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0)]
ZeroBytes = Literal["not attached", "wrote elsewhere", "no file opened", "no data call"]
FAIL_OPENS = ("failed_open", "gave_up", "interrupted", "lapses", "overdue", "policy_failed")
"""Counters of calls that should have been held or forwarded, and were not."""


class JobAllocation(msgspec.Struct, frozen=True, kw_only=True):
    """The I/O nodes that the site's policies decided on for a job, and why."""

    io_nodes: Annotated[list[int], Meta(description="I/O nodes; empty: direct.")]
    reason: Annotated[
        str,
        Meta(
            description="policy: the allocation policy gave the count, the placement policy the "
            "I/O nodes; prior: the same, from a curve that is, in part, that of its class; "
            "placed-by-load: the same count on the least loaded I/O nodes; new: too "
            "little is known of it and it began only now; unknown: too little is known, it has a "
            "share of what others leave; failed: the policy raised an exception; explored: a "
            "neighbouring count, to learn its bandwidth; pinned: it or a person asked for them; "
            "unreachable: no I/O node that is up serves it, by its host or its user."
        ),
    ]
    policy: Annotated[
        str, Meta(description="The policy that gave the count; empty: none of the site's.")
    ] = ""
    knowledge: Annotated[
        dict[str, str],
        Meta(description="What is known of the job and the policy uses, in words, by its name."),
    ] = {}
    lacks: Annotated[
        list[str], Meta(description="What a policy needs to know of it, and is not known.")
    ] = []
    why_unknown: Annotated[
        str,
        Meta(description="Why none of its bandwidths is known, though its application has run."),
    ] = ""
    error: Annotated[str, Meta(description="What a policy raised.")] = ""
    since_seconds: Annotated[float, Meta(description="For how long this has been so.")] = 0.0


class JobSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The public part of a job's record, without private data of its user."""

    id: Annotated[str, Meta(description="Name and serial number, such as solver.3.")]
    state: Annotated[str, Meta(description="running, ended, or lost: its connection broke.")]
    began: Annotated[float, Meta(description="Start time, in seconds since the epoch.")]
    seconds: Annotated[float, Meta(description="Run time so far, or in total.")]
    io_nodes: Annotated[
        list[int], Meta(description="I/O nodes that it may use now; empty: direct.")
    ]
    io_nodes_used: Annotated[
        list[int], Meta(description="I/O nodes that have moved data for it, now or earlier.")
    ] = []
    file_systems: Annotated[
        list[str],
        Meta(description="File systems on which it moved data or has a phase now, by name."),
    ] = []
    waits_on: Annotated[
        list[str],
        Meta(
            description="File systems on which it waits for its turn now, or would wait if turns "
            "were enforced. While it transfers: its calls on others go on."
        ),
    ] = []
    forwarded_bytes: Annotated[
        Count, Meta(description="Bytes moved by I/O nodes, or with their permission.")
    ]
    carried_bytes: Annotated[
        Count,
        Meta(
            description="Of those, bytes that I/O nodes carried: of other hosts, or emulated ones."
        ),
    ] = 0
    direct_bytes: Annotated[Count, Meta(description="Bytes moved without an I/O node.")]
    fail_opens: Annotated[Count, Meta(description="Calls let through unmanaged.")]
    waits: Annotated[Count, Meta(description="Calls that waited at the gate.")]
    waited_seconds: Annotated[float, Meta(description="Time at the gate, over all threads.")]


class PinnedIoNodes(msgspec.Struct, frozen=True, kw_only=True):
    """I/O nodes that a job keeps, whatever policies decide."""

    io_nodes: Annotated[list[int], Meta(description="Their numbers; empty: direct.")]
    stripe: Annotated[int, Meta(description="Bytes of a stripe; 0: none.")] = 0


class JobRecord(JobSummary, frozen=True, kw_only=True):
    """A job that runs, or that ended recently. Clients without a token see a part of it.

    The fields from `mode` on describe its turns; they are null for a job that takes no part in
    turns (its agent is of an old version), or that ended while no controller ran.
    """

    serial: Annotated[int, Meta(description="The number in its id.")] = 0
    name: Annotated[str, Meta(description="Job name.")] = ""
    user: Annotated[str, Meta(description="Its user's name.")] = ""
    uid: Annotated[int, Meta(description="Its user's number; -1: not known on this host.")] = -1
    pid: Annotated[int, Meta(description="Process id of its 'penstock run' or agent.")] = 0
    host: Annotated[str, Meta(description="Address of its host; empty: the controller's.")] = ""
    command: Annotated[list[str], Meta(description="Command line.")] = []
    executable: Annotated[
        str,
        Meta(
            description="Name of its application: as its user or the batch system names it, or "
            "the program in its command, behind launchers and interpreters. Empty: not known."
        ),
    ] = ""
    nodes: Annotated[int, Meta(description="Compute nodes.")] = 1
    processes: Annotated[int | None, Meta(description="Processes, if known.")] = None
    requested_io_nodes: Annotated[
        int | None, Meta(description="I/O nodes that it asked for; null: the site's default.")
    ] = None
    stripe: Annotated[
        int, Meta(description="Bytes of a stripe of its files over its I/O nodes; 0: none.")
    ] = 0
    pinned: Annotated[
        PinnedIoNodes | None,
        Meta(
            description="I/O nodes that it, or a person, asked for, and that it keeps. Null: the "
            "site's default, or its policies, gave them."
        ),
    ] = None
    allocation: Annotated[
        JobAllocation | None,
        Meta(
            description="Its I/O nodes as the site's policies decided, whether they are enforced "
            "or not. Null: the site has no allocation policy."
        ),
    ] = None
    would_have: Annotated[
        list[int] | None,
        Meta(
            description="I/O nodes that it would have, if its mode were enforce. Null: it is, or "
            "the site has no allocation policy."
        ),
    ] = None
    status: Annotated[int | None, Meta(description="Exit status, once it ended.")] = None
    reconnected: Annotated[
        float | None,
        Meta(
            description="When it came from an earlier controller, in seconds since the epoch; "
            "its phases and waits for turns are counted from then on. Null: it did not."
        ),
    ] = None
    ended: Annotated[float | None, Meta(description="End, in seconds since the epoch.")] = None
    zero_bytes_reason: Annotated[
        ZeroBytes | None,
        Meta(
            description="Why no data of it was seen. not attached: no process of it loaded the "
            "client library; wrote elsewhere: it opened files for writing, all outside the managed "
            "directories; no file opened: none that the client library could see; no data call: "
            "it opened managed files, and no read or write was seen. Null: data was seen, or a "
            "phase, whose first call may still wait; or its agent is of an older version."
        ),
    ] = None
    counters: Annotated[dict[str, int], Meta(description="Its counters, over all threads.")] = {}
    bytes_by_io_node: Annotated[
        dict[str, int], Meta(description="Bytes moved by each I/O node, by its number.")
    ] = {}
    bytes_by_file_system: Annotated[
        dict[str, int], Meta(description="Bytes moved on each file system, by its name.")
    ] = {}
    phases: Annotated[Count, Meta(description="I/O phases that are over.")] = 0
    phase_bytes: Annotated[float | None, Meta(description="Mean bytes per phase.")] = None
    phase_seconds: Annotated[float, Meta(description="Mean transfer time of a phase.")] = 0.0
    phases_by_mode: Annotated[
        dict[str, int], Meta(description="Its phases by the mode in which they ended.")
    ] = {}
    turn_waited_seconds: Annotated[
        float | None, Meta(description="Time that its phases waited for turns, up to now.")
    ] = None
    would_have_waited_seconds: Annotated[
        float | None,
        Meta(
            description="Time that its phases would have waited for turns, had the mode been "
            "enforce; of phases in modes observe, advise and off."
        ),
    ] = None
    bandwidth: Annotated[
        float | None,
        Meta(
            description="Bytes per second that it is expected to reach with its number of I/O "
            "nodes: of its best phase with it, which counts less with every later one, or of its "
            "application's curve."
        ),
    ] = None
    best_bandwidth: Annotated[
        float | None,
        Meta(
            description="Bytes per second of the best phase of this run. Null: none was long "
            "enough to measure (0.1 s)."
        ),
    ] = None
    mode: Annotated[str | None, Meta(description="observe, advise, enforce or off.")] = None
    doing: Annotated[
        str | None,
        Meta(description="computing, transferring or waiting; or its state, once it ended."),
    ] = None
    since_seconds: Annotated[
        float | None, Meta(description="For how long it has been transferring, or waiting.")
    ] = None
    at_most_seconds: Annotated[
        float | None,
        Meta(description="How much longer it can wait: until live.max-wait after its phase began."),
    ] = None
    behind: Annotated[
        list[str], Meta(description="Jobs that it waits for, the first ten of them.")
    ] = []
    ahead: Annotated[
        Count,
        Meta(description="How many jobs it waits for; on several resources, where they are most."),
    ] = 0
    share: Annotated[
        float,
        Meta(
            description="Share granted: its weight over the weights of all that transfer now, with "
            "or without a turn; with sharing.scope = 'io-node', of those on each of its I/O nodes, "
            "the mean."
        ),
    ] = 0.0
    out_of_turn: Annotated[
        bool,
        Meta(
            description="It transfers without a turn: it waited for live.max-wait, the policy "
            "failed, or it was transferring when the controller began."
        ),
    ] = False
    received: Annotated[
        float | None,
        Meta(
            description="Share received: its part of the bytes that all jobs moved in the last 5 "
            "s, or since it began to transfer if that is later. Null: it does not transfer, or it "
            "is too early to tell, or no job moved anything."
        ),
    ] = None
    group: Annotated[str | None, Meta(description="Its group; null: it shares with everybody.")] = (
        None
    )
    weight: Annotated[float | None, Meta(description="Its weight among those transferring.")] = None
    w_iter: Annotated[float | None, Meta(description="Seconds per iteration, if known.")] = None
    iterations: Annotated[
        Count, Meta(description="Iterations of this run that w_iter was learnt from.")
    ] = 0
    earlier_iterations: Annotated[
        Count,
        Meta(description="Weight of earlier runs of its application in w_iter, in iterations."),
    ] = 0

    def summary(self) -> JobSummary:
        """Return the part that anybody may see."""
        return JobSummary(**{name: getattr(self, name) for name in JobSummary.__struct_fields__})

    @property
    def moved_bytes(self) -> int:
        """Bytes moved, forwarded and direct."""
        return self.forwarded_bytes + self.direct_bytes

    def lost(self, now: float) -> "JobRecord":
        """Return the record of a running job that is lost at this time."""
        seconds = max(now - self.began, 0.0)
        return msgspec.structs.replace(self, state="lost", ended=now, seconds=seconds)


def zero_bytes_reason(counters: Mapping[str, int]) -> ZeroBytes | None:
    """Return why no data of a job was seen; None: some was, or its agent does not say.

    A phase begins with a data call: its bytes are counted once it was let through.
    """
    if "attached" not in counters or counters.get("phases", 0):
        return None
    if forwarded_bytes(counters) + direct_bytes(counters):
        return None
    if not counters["attached"]:
        return "not attached"
    if counters.get("opens", 0):
        return "no data call"
    return "wrote elsewhere" if counters.get("opens_elsewhere", 0) else "no file opened"


def forwarded_bytes(counters: Mapping[str, int]) -> int:
    """Return the bytes that I/O nodes transferred, or permitted."""
    return counters.get("forwarded_read_bytes", 0) + counters.get("forwarded_write_bytes", 0)


def direct_bytes(counters: Mapping[str, int]) -> int:
    """Return the bytes transferred without an I/O node, calls left to the kernel included."""
    total = counters.get("read_bytes", 0) + counters.get("write_bytes", 0)
    # A page read while the job counts may show the parts before the whole.
    return max(total - forwarded_bytes(counters), 0) + counters.get("left_bytes", 0)


def fail_opens(counters: Mapping[str, int]) -> int:
    """Return the number of calls that should have been held or forwarded, and were not."""
    return sum(counters.get(cause, 0) for cause in FAIL_OPENS)
