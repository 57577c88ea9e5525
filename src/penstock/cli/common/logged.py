"""The write of a Darshan log, as a machine would get it, and what had to be assumed for that."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import units
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.learn.profiles import Profile
    from penstock.learn.write_models.machine import Machine
    from penstock.model.write import Write


def write(log: Path, machine: "Machine", given: Mapping[str, Any]) -> "tuple[Write, list[str]]":
    """Return the largest write of a log, changed by what is given, and what is to be known of it.

    Where a log does not say on how many nodes its processes were, `nodes` or `cores` do.
    """
    from penstock.learn.profiles import write_of  # noqa: PLC0415 - most writes have no log
    from penstock.sim.formats import darshan  # noqa: PLC0415

    profile = darshan.read(log)
    notes = [f"of the log: {note}" for note in profile.notes]
    known = dict(given)
    each: int | None = None
    if profile.nodes is None:
        nodes, each = known.pop("nodes", None), known.pop("cores", None)
        if nodes is not None and nodes >= 1:
            each = each or math.ceil(profile.processes / nodes)
        if each is None:
            each = machine.cores
            notes.append(
                f"the log does not say on how many nodes its {profile.processes:,} processes "
                f"were: taken to be {each} on each; --cores says otherwise"
            )
        elif each < 1:
            raise InputError(f"--cores: {each} processes a node; give one or more")
    found = write_of(profile, cores=each)
    if took := _took(profile):
        notes.append(
            f"the logged run took {units.show_seconds(took)} for it, where it ran; if that was "
            f"{machine.name}, 'advise --measured' makes use of it"
        )
    return replace(_here(found, machine, notes), **known), notes


def _took(profile: "Profile") -> float | None:
    """Return the seconds of the phase that wrote the most."""
    phase = max(profile.phases, key=lambda phase: phase.written, default=None)
    return None if phase is None else phase.seconds


def _here(found: "Write", machine: "Machine", notes: list[str]) -> "Write":
    """Return a write with the stripes that a machine can give it."""
    count, striping = found.stripe_count, machine.striping
    if count is None and found.stripe_size is None:
        return found
    if striping.chosen and (count is None or 1 <= count <= striping.targets):
        return found
    notes.append(f"the log's stripes cannot be had on {machine.name}: its own are taken")
    return replace(found, stripe_count=None, stripe_size=None)
