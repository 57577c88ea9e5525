"""Curves of jobs that were never run: a model's word on their write, for allocators.

What is divided among jobs is one stage of the machine: a group (I/O nodes, routers) or the targets.
With n of its components the write is predicted on a machine that has only those: a group's
components each take m / n of the nodes, and of fewer targets there are fewer to choose from, on as
many servers as they need. Bandwidths are in MB/s, as those of the published curves.
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
"""Components up to which a curve goes."""


def curve(
    model: WriteModel,
    write: Write,
    *,
    over: str = "",
    counts: Iterable[int] | None = None,
) -> Curve:
    """Return a write's bandwidth by number of a stage's components, else of the last group's."""
    machine = model.machine
    check(machine, write)
    stage = divided(machine, over)
    most = _most(machine, write, stage)
    wanted = sorted({*counts}) if counts is not None else _doubled(most)
    points: dict[int, float] = {}
    for n in wanted:
        if not 1 <= n <= most:
            raise InputError(f"{n} of stage {stage.name!r}; this write can use 1 to {most}")
        fewer = limited(machine, write, stage, n)
        seconds = _on(fewer, model).predict(_free(fewer, write)).seconds
        points[n] = write.bytes / seconds / MB
    return Curve.of(points)


def divided(machine: Machine, over: str = "") -> Stage:
    """Return the stage of a name, else the last group before the storage, else the targets."""
    stages = {s.name: s for s in machine.stage if s.kind in ("group", "target")}
    if over and over not in stages:
        raise unknown(f"stage of {machine.name} that can be divided", over, stages)
    groups = list(machine.groups)
    chosen = stages.get(over) or (groups[-1] if groups else machine.one("target"))
    if chosen is None:
        raise InputError(f"{machine.name} has neither groups nor targets to divide; describe some")
    return chosen


def limited(machine: Machine, write: Write, stage: Stage, n: int) -> Machine:
    """Return the machine as a job sees it that has n components of a stage."""
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


def _on(machine: Machine, model: WriteModel) -> WriteModel:
    other = copy.copy(model)
    other.machine = machine
    return other


def _free(machine: Machine, write: Write) -> Write:
    """Return a write that goes wherever its job has components."""
    count = write.stripe_count
    if count is not None:
        count = min(width(machine, write), machine.striping.targets)
    return replace(write, placement=(), stripe_count=count)


def _most(machine: Machine, write: Write, stage: Stage) -> int:
    if stage.kind == "group":
        return min(MOST, write.nodes, -(-machine.nodes // stage.nodes_each))
    return min(MOST, machine.striping.targets)


def _doubled(most: int) -> list[int]:
    return [*(2**k for k in range(most.bit_length()) if 2**k < most), most]
