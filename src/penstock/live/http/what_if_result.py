"""The result of a what-if: what `penstock what-if --lanes --json` prints.

The command runs in another process and the controller passes its output on unread, so a test
validates a real result against these types. A number is null where it is not defined.
"""

from typing import Literal

import msgspec


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """Improvement over what ran, simulated, per metric: 0.1 is ten percent better.

    It counts only where `beyond_model_error` is true.
    """

    utilization: float | None
    max_stretch: float | None
    io_slowdown: float | None
    min_yield: float | None
    efficiency: float | None
    makespan: float | None


class BeyondModelError(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a policy differs from what ran, simulated, by more than the model error."""

    utilization: bool
    max_stretch: bool
    io_slowdown: bool
    min_yield: bool
    efficiency: bool
    makespan: bool


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A metric: recorded, of what ran simulated, and by which part the latter is higher."""

    recorded: float | None
    simulated: float | None
    error: float | None
    bar: float | None  # the relative difference that a gain must exceed
    by_run_times: bool  # whether job_error sets it


class ModelCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What ran, simulated, against what was recorded."""

    utilization: Check
    max_stretch: Check
    io_slowdown: Check
    min_yield: Check
    efficiency: Check
    makespan: Check


class JobChange(msgspec.Struct, frozen=True, kw_only=True):
    """A job's run time in seconds: recorded, under what ran, and under a policy, both simulated."""

    job: str
    recorded: float
    ran: float
    simulated: float
    change: float


class JobChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that gain most and lose most, by more than the model error for the job."""

    gain: list[JobChange]
    lose: list[JobChange]


class AllocationDecisions(msgspec.Struct, frozen=True, kw_only=True):
    """How an allocation policy gave I/O nodes: what it did not know, of how many jobs."""

    reasons: dict[str, int]  # times that jobs got I/O nodes, by reason
    jobs_by_fallback: int  # jobs that the policy could not decide
    unmet_needs: dict[str, int]  # what is not known, with the number of jobs
    moves: int


class Figures(Gain, frozen=True, kw_only=True):
    """The metrics of a simulated policy."""

    needs: list[str]  # what the policy must know of a job
    decisions: AllocationDecisions | None  # null: sharing policies are compared
    simulated_only: str | None  # why 'penstock up' refuses the policy; null: it does not

    utilization_bound: float | None
    window: tuple[float, float]
    gain: Gain
    beyond_model_error: BeyondModelError
    jobs: JobChanges


class FittedBandwidth(msgspec.Struct, frozen=True, kw_only=True):
    """Bandwidth in bytes per second: what the record shows, and site.bandwidth as declared."""

    alone: float | None
    together: float | None
    declared: float | None
    fitted: float | None


class MissingEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Events that are missing in the record; `matters`: enough to change figures."""

    events: int | None  # null: the record's events have no numbers
    unmatched: int  # recorded events that do not follow from those before
    matters: bool


class AboutRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record that was simulated."""

    files: list[str]
    run: str
    source: Literal["live", "emulated", "simulated"] | None
    began: str
    policy: str
    mode: str | None
    jobs: int
    iterations: int
    omega: float | None
    knowledge: str
    bandwidth: FittedBandwidth
    missing: MissingEvents
    cuts: dict[str, int]
    notes: list[str]


class SkippedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy that the record cannot feed."""

    policy: str
    reason: str


class LaneOfJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that has a lane."""

    id: str
    nodes: int
    began: float


class LanesOfRun(msgspec.Struct, frozen=True, kw_only=True):
    """Intervals (index of the job, kind, start, end, share), the end of each job, and the limit."""

    stretches: list[tuple[int, Literal["io", "wait"], float, float, float]]
    finish: list[float]
    until: float | None


class ResultLanes(msgspec.Struct, frozen=True, kw_only=True):
    """What each job did when, recorded and simulated; times are seconds of the record."""

    begin: float
    window: tuple[float, float]
    jobs: list[LaneOfJob]
    left_out: int
    recorded: LanesOfRun
    simulated: dict[str, LanesOfRun]


class WhatIfResult(msgspec.Struct, frozen=True, kw_only=True):
    """What ran, how well the model fits it, and each policy that was simulated.

    Where placement policies are compared, `policies` are pairs, as "one + random".
    """

    record: AboutRecord
    kind: Literal["sharing", "allocation"]
    sharing: str  # the sharing policy that ran
    baseline: str | None  # what metrics of allocations are relative to
    ran: str
    verdict: str
    judged: bool  # false: gains say nothing
    not_judged: str | None  # why
    model_check: ModelCheck
    job_error: float | None  # mean relative error of the jobs' run times
    policies: dict[str, Figures]
    skipped: list[SkippedPolicy]
    lanes: ResultLanes
