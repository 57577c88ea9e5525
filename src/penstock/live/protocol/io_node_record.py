"""An I/O node as people see it: in `penstock status --json`, `top` and the HTTP API."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

Count = Annotated[int, Meta(ge=0)]
Value = int | float | str


class IoNodeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What anybody may know of an I/O node; counters are missing if it does not answer."""

    number: Count
    alive: Annotated[bool, Meta(description="Whether its process runs.")]
    state: Annotated[
        str,
        Meta(
            description="serving, not answering, starting or down; on another host: not connected."
        ),
    ]
    deaths: Annotated[Count, Meta(description="Times that its process died.")]
    jobs: Annotated[list[str], Meta(description="Jobs that have it.")]
    scheduler: str | UnsetType = UNSET
    connections: Count | UnsetType = UNSET
    queued: Count | UnsetType = UNSET
    requests: Count | UnsetType = UNSET
    bytes: Annotated[
        Count,
        Meta(description="Bytes read and written by its present process; 0 if it does not answer."),
    ] = 0
    read_bytes: Count | UnsetType = UNSET
    write_bytes: Count | UnsetType = UNSET
    errors: Count | UnsetType = UNSET
    refused: Count | UnsetType = UNSET
    silent_seconds: float | UnsetType = UNSET


class NodeTuning(msgspec.Struct, frozen=True, kw_only=True):
    """The tuned values of an I/O node, and the access pattern of its last report."""

    tuned: dict[str, Value] = {}
    chosen: dict[str, Value] = {}
    pattern: str | UnsetType = UNSET
    confidence: float | UnsetType = UNSET
    rate: float | UnsetType = UNSET
    operation: str | UnsetType | None = UNSET


class IoNodeRecord(IoNodeSummary, frozen=True, kw_only=True):
    """An I/O node: its counters if it answers, else for how long it has not, and why."""

    id: Annotated[int | None, Meta(description="The id of its present process.")] = None
    pid: int | None = None
    user: Annotated[
        str | UnsetType,
        Meta(description="The only user whose data it carries; missing: it carries no data."),
    ] = UNSET
    why: Annotated[str, Meta(description="Why it does not answer.")] | UnsetType = UNSET
    sessions: Count | UnsetType = UNSET
    files: Count | UnsetType = UNSET
    reads: Count | UnsetType = UNSET
    writes: Count | UnsetType = UNSET
    syncs: Count | UnsetType = UNSET
    batches: Count | UnsetType = UNSET
    aggregated: Count | UnsetType = UNSET
    dropped: Count | UnsetType = UNSET
    groups: Annotated[dict[str, int], Meta(description="Bytes by job.")] | UnsetType = UNSET
    in_service: Annotated[dict[str, int], Meta(description="Batches by job.")] | UnsetType = UNSET
    tuned: dict[str, Value] | UnsetType = UNSET
    chosen: dict[str, Value] | UnsetType = UNSET
    pattern: str | UnsetType = UNSET
    confidence: float | UnsetType = UNSET
    rate: float | UnsetType = UNSET
    operation: str | UnsetType | None = UNSET

    def summary(self) -> IoNodeSummary:
        """Return the part that anybody may see."""
        names = IoNodeSummary.__struct_fields__
        return IoNodeSummary(**{name: getattr(self, name) for name in names})


class TuningStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The tuning of a site's I/O nodes."""

    policy: str
    parameters: list[str]
    applied: Annotated[bool, Meta(description="Whether chosen values are set.")]
    rounds: Annotated[Count, Meta(description="Choices so far.")]
    explored: Annotated[Count, Meta(description="Choices made to explore.")]
    guarded: Annotated[Count, Meta(description="Choices for which exploring cost too much.")]
    missed: Annotated[Count, Meta(description="Reports that came too late for a choice.")]
    exploring: Annotated[list[str], Meta(description="Parameters being explored now.")]
    contexts: Annotated[Count, Meta(description="Access patterns seen so far.")]
    faults: Annotated[Count, Meta(description="Exceptions of tuners.")]


class AllocationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a site's I/O nodes are given to jobs."""

    policy: Annotated[str, Meta(description="Says how many I/O nodes each job gets.")]
    placement: Annotated[str, Meta(description="Says which ones.")]
    fallback: Annotated[str, Meta(description="For jobs of which too little is known.")]
    settle: Annotated[
        float, Meta(description="Seconds that such a job runs before others make room for it.")
    ]
    moves: Annotated[Count, Meta(description="Times that a running job was given other I/O nodes.")]
    reasons: Annotated[
        dict[str, int],
        Meta(description="Times that I/O nodes were decided on for a job, by reason."),
    ]
