"""Which policy the jobs of a record really ran under: its header's, or none.

Jobs wait for their turns in mode enforce only. In all other modes every phase transfers from its
beginning on, whatever the policy decides: what ran is fair-share. A part of a record has one mode;
of a record whose parts ran under different policies, the longest stretch of one policy is taken.
"""

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from penstock.errors import InputError
from penstock.records import ENFORCE, Header, Record
from penstock.records.lines import named_code
from penstock.units import show_count, show_seconds

UNMANAGED = "fair-share"
"""What runs where nobody waits."""
SOURCES: Mapping[str | None, str] = {
    "simulated": "this record is of a simulated run: the model check compares the simulator with "
    "itself",
    "emulated": "this record is of a site whose file system was emulated",
}
"""What to say of a record beside its model check, by its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A policy and its options, and the mode that the site was in; None: not recorded."""

    policy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    mode: str | None = field(default=None, compare=False)

    @classmethod
    def under(cls, header: Header) -> "Ran":
        """Return what ran in a part of a record."""
        if header.mode in {None, ENFORCE}:
            sharing = header.sharing
            return cls(policy=sharing.policy, options=sharing.options, mode=header.mode)
        return cls(policy=UNMANAGED, mode=header.mode)

    def check_trust(self, trusted: Collection[str]) -> None:
        """Raise InputError if it names code that nobody trusts: a simulation runs it."""
        untrusted = [code for code in named_code(self.policy, self.options) if code not in trusted]
        if untrusted and untrusted[0] != self.policy:
            raise InputError(
                f"what ran is the policy {self.policy!r} with {untrusted[0]!r}, which a simulation "
                f"imports; if you trust it, give --trust {shlex.quote(untrusted[0])}"
            )
        if untrusted:
            raise InputError(
                f"what ran is the policy {Path(self.policy).name!r}, a file, and gains are "
                f"relative to its simulation; if you trust the file, give --trust {self._file()}"
            )

    def _file(self) -> str:
        """Return the policy file as one names it from here; others may read this, so no more."""
        path, here = Path(self.policy), Path.cwd()
        below = path.is_relative_to(here)
        return shlex.quote(str(path.relative_to(here) if below else Path("DIRECTORY", path.name)))


def one_policy(record: Record) -> tuple[Record, Ran, list[str]]:
    """Return the longest stretch of a record that ran under one policy, and notes about it."""
    parts = list(zip(record.paths, record.headers, strict=True))
    stretches = [
        (ran, list(members)) for ran, members in groupby(parts, lambda part: Ran.under(part[1]))
    ]
    ran, members = stretches[0]
    notes = []
    if len(stretches) > 1:
        ends = [those[0][1].began for _, those in stretches[1:]]
        ends.append(max((entry.event.time for entry in Record(parts[-1][0])), default=ends[-1]))
        lasted = [end - those[0][1].began for end, (_, those) in zip(ends, stretches, strict=True)]
        longest = max(range(len(stretches)), key=lasted.__getitem__)
        ran, members = stretches[longest]
        record = Record(*(path for path, _ in members))
        described = ", ".join(
            f"{_numbers(those)} {each.policy} (mode {each.mode}, {show_seconds(seconds)})"
            for seconds, (each, those) in zip(lasted, stretches, strict=True)
        )
        notes.append(f"what ran changed: {described}; only {_numbers(members)} is used here")
    return record, ran, notes


def _numbers(members: list[tuple[Any, Header]]) -> str:
    first, last = members[0][1].part, members[-1][1].part
    return f"part {first}" if first == last else f"parts {first} to {last}"


def left_out(record: Record, ran: Ran, users: Collection[str]) -> list[str]:
    """Return what the simulation of what ran leaves out; `users` are those of the record's jobs."""
    notes = []
    headers = record.headers
    if ran.mode is None:
        unsaid = "the record does not say in which mode the site was"
        taken = (
            "fair-share makes no job wait in any"
            if ran.policy == UNMANAGED
            else "it is taken as enforced, and if jobs did not wait for turns, what ran was "
            "fair-share"
        )
        notes.append(f"{unsaid}; {taken}")
    apart = {
        user
        for header in headers
        for user, mode in header.user_modes.items()
        if user in users and (mode == ENFORCE) != (header.mode == ENFORCE)
    }
    if apart:  # without their names: the dashboard shows this to everybody
        notes.append(
            f"{show_count(len(apart), 'user')} with a mode of their own: they are simulated like "
            "all others"
        )
    if ran.mode == ENFORCE and len(users) > 1 and any(header.fair_users for header in headers):
        notes.append("turns alternated between users (fair-users); the simulation does not do that")
    return notes
