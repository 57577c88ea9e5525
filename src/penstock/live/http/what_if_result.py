"""The result of a what-if: what `penstock what-if --lanes --json` prints.

The command runs in another process and the controller passes its output on unread, so a test
validates a real result against these types. A number is null where it is not defined.
"""

from typing import Literal

import msgspec


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """Relative improvement over the record, per metric: 0.1 is ten percent better."""

    utilization: float | None
    max_stretch: float | None
    io_slowdown: float | None
    min_yield: float | None
    efficiency: float | None
    makespan: float | None


class Figures(Gain, frozen=True, kw_only=True):
    """The metrics of a run."""

    utilization_bound: float | None
    window: tuple[float, float]
    gain: Gain


class JobChange(msgspec.Struct, frozen=True, kw_only=True):
    """A job's run time, recorded and simulated, in seconds."""

    job: str
    recorded: float
    simulated: float
    change: float


class JobChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that gain most and lose most."""

    gain: list[JobChange]
    lose: list[JobChange]


class SimulatedFigures(Figures, frozen=True, kw_only=True):
    """The metrics of a simulated policy."""

    jobs: JobChanges


class AboutRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record that was simulated."""

    files: list[str]
    run: str
    began: str
    policy: str
    jobs: int
    iterations: int
    omega: float | None
    knowledge: str
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
    """Metrics and lanes of a record, and of each policy that was simulated."""

    record: AboutRecord
    recorded: Figures
    simulated: dict[str, SimulatedFigures]
    skipped: list[SkippedPolicy]
    lanes: ResultLanes
