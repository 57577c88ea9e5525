"""Predicted bandwidth curves of jobs that were never run, for allocators.

Allocators divide one stage of the machine among jobs: a group (I/O nodes, routers) or the targets.
With n of its components the write is predicted on a machine that has only those: each component of
a group serves m / n of the nodes, and n targets are on as many servers as they need. Bandwidths are
in MB/s, as in the published curves.
"""

import copy
from collections.abc import Iterable
from dataclasses import replace

import msgspec

from penstock.errors import InputError, unknown
from penstock.learn.write_models.machine import Machine, Stage
from penstock.learn.write_models.parameters import check, width
from penstock.learn.write_models.prediction import WriteModel
from penstock.model.curve import Curve
from penstock.model.write import Write

MB = 1e6
MOST = 128
"""Largest number of components of a curve."""


def curve(
    model: WriteModel,
    write: Write,
    *,
    over: str = "",
    counts: Iterable[int] | None = None,
) -> Curve:
    """Return a write's bandwidth by number of components of stage `over` (else the last group)."""
    machine = model.machine
    check(machine, write)
    stage = divided_stage(machine, over)
    most = _most(machine, write, stage)
    numbers = sorted({*counts}) if counts is not None else _powers_of_two(most)
    points: dict[int, float] = {}
    for n in numbers:
        if not 1 <= n <= most:
            raise InputError(f"{n} of stage {stage.name!r}; this write can use 1 to {most}")
        fewer = limit(machine, write, stage, n)
        seconds = _with_machine(model, fewer).predict(_unplaced(fewer, write)).seconds
        points[n] = write.bytes / seconds / MB
    return Curve.of(points)


def divided_stage(machine: Machine, over: str = "") -> Stage:
    """Return the stage named `over`, else the last group before the storage, else the targets."""
    stages = {s.name: s for s in machine.stage if s.kind in ("group", "target")}
    if over and over not in stages:
        raise unknown(f"stage of {machine.name} that can be divided", over, stages)
    groups = list(machine.groups)
    stage = stages.get(over) or (groups[-1] if groups else machine.one("target"))
    if stage is None:
        raise InputError(f"{machine.name} has neither groups nor targets to divide; describe some")
    return stage


def limit(machine: Machine, write: Write, stage: Stage, n: int) -> Machine:
    """Return the machine as seen by a job that has n components of a stage."""
    if stage.kind == "group":
        fewer = msgspec.structs.replace(stage, nodes_each=-(-write.nodes // n))
        stages = tuple(fewer if one == stage else one for one in machine.stage)
        return msgspec.structs.replace(machine, stage=stages)
    striping = msgspec.structs.replace(
        machine.striping,
        targets=n,
        servers=min(n, machine.striping.servers),
        count=min(n, machine.striping.count),
    )
    return msgspec.structs.replace(machine, striping=striping)


def _with_machine(model: WriteModel, machine: Machine) -> WriteModel:
    other = copy.copy(model)
    other.machine = machine
    return other


def _unplaced(machine: Machine, write: Write) -> Write:
    """Return a write without placement, with a stripe count that the machine can provide."""
    count = write.stripe_count
    if count is not None:
        count = min(width(machine, write), machine.striping.targets)
    return replace(write, placement=(), stripe_count=count)


def _most(machine: Machine, write: Write, stage: Stage) -> int:
    if stage.kind == "group":
        return min(MOST, write.nodes, -(-machine.nodes // stage.nodes_each))
    return min(MOST, machine.striping.targets)


def _powers_of_two(most: int) -> list[int]:
    return [*(2**k for k in range(most.bit_length()) if 2**k < most), most]
