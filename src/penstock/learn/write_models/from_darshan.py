"""The write that a Darshan log describes, as another machine would do it."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock import units
from penstock.errors import InputError
from penstock.learn.profiles import Profile, write_of
from penstock.learn.write_models.machine import Machine
from penstock.model.write import Write


def largest_write(
    profile: Profile, machine: Machine, overrides: Mapping[str, Any]
) -> tuple[Write, list[str]]:
    """Return the largest write of a profile, with `overrides`, and notes on the assumptions made.

    If the log does not say how many nodes its processes ran on, `nodes` or `cores` must.
    """
    notes = [f"of the log: {note}" for note in profile.notes]
    changes = dict(overrides)
    cores: int | None = None
    if profile.nodes is None:
        nodes, cores = changes.pop("nodes", None), changes.pop("cores", None)
        if nodes is not None and nodes >= 1:
            cores = cores or math.ceil(profile.processes / nodes)
        if cores is None:
            cores = machine.cores
            notes.append(
                f"the log does not say on how many nodes its {profile.processes:,} processes "
                f"were: taken to be {cores} on each; --cores says otherwise"
            )
        elif cores < 1:
            raise InputError(f"--cores: {cores} processes per node; give one or more")
    write = write_of(profile, cores=cores)
    phase = max(profile.phases, key=lambda phase: phase.written, default=None)
    if phase is not None and phase.seconds:
        notes.append(
            f"the logged run took {units.show_seconds(phase.seconds)} for it, where it ran; if "
            f"that was {machine.name}, 'advise --measured' makes use of it"
        )
    return replace(_with_valid_stripes(write, machine, notes), **changes), notes


def _with_valid_stripes(write: Write, machine: Machine, notes: list[str]) -> Write:
    """Drop the log's striping, with a note, if the machine cannot provide it."""
    count, striping = write.stripe_count, machine.striping
    if count is None and write.stripe_size is None:
        return write
    if striping.selectable and (count is None or 1 <= count <= striping.targets):
        return write
    notes.append(f"{machine.name} cannot provide the log's striping: its default is used")
    return replace(write, stripe_count=None, stripe_size=None)
