"""Replays a record's events through a new Manager, which must decide the recorded actions."""

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from penstock.core.ledger import Ledger, decide
from penstock.core.manager import Manager
from penstock.errors import InputError
from penstock.files import reason
from penstock.model import Action, Event
from penstock.records.lines import Entry
from penstock.records.reader import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An event on which a new Manager decides otherwise than the record says."""

    where: str
    event: Event
    recorded: Sequence[Action] | None
    """None: the policy failed; likewise in `replayed`."""
    replayed: Sequence[Action] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """Events and actions that agree, up to the first difference or the end."""

    events: int
    actions: int
    first_difference: Difference | None


def replay(record: Record, *, trusted: Collection[str] = ()) -> ReplayResult:
    """Replay a record from the first part of its run.

    Code that a record names, as a policy file, is run only if it is in `trusted`.
    """
    record = record.whole()
    for code in record.header.code():
        if code not in trusted:
            raise InputError(
                f"{record.paths[0]} was decided with {code!r}, code that a replay runs; if you "
                f"trust it, give --trust {shlex.quote(code)}"
            )
    if record.lost:
        raise InputError(
            f"{record.paths[0]}: {record.lost} events of run {record.header.run} were not "
            "written, so those after them cannot be replayed; give the parts before the gap"
        )
    try:
        arbiter = record.header.arbiter(hears_phases=True)
        manager, ledger = record.header.manager(arbiter)
    except InputError as error:
        raise InputError(f"{record.paths[0]}, line 1: {error}") from error
    events = actions = 0
    for entry in record:
        if record.gaps:
            raise InputError(
                f"{record.gaps[0]}, so those after them cannot be replayed; is the file damaged?"
            )
        recorded = None if entry.failed else tuple(entry.actions)
        if arbiter is not None:
            arbiter.calls.repeat = entry.late
        event, decided = _decide(manager, ledger, entry)
        if event != entry.event or decided != recorded:
            difference = Difference(
                where=entry.where, event=entry.event, recorded=recorded, replayed=decided
            )
            return ReplayResult(events=events, actions=actions, first_difference=difference)
        events += 1
        actions += len(decided or ())
    return ReplayResult(events=events, actions=actions, first_difference=None)


def _decide(
    manager: Manager, ledger: Ledger, entry: Entry
) -> tuple[Event, tuple[Action, ...] | None]:
    """Return the event with its time, and the actions; None: the policy failed, as recorded."""
    try:
        event, actions = decide(manager, ledger, entry.event)
    except Exception as error:
        if entry.failed:  # ledger and Manager have handled it so far, as they had then
            return entry.event, None
        if isinstance(error, KeyError):
            raise InputError(f"{entry.where}: no job {error}, or it has no phase") from error
        if isinstance(error, ValueError | ArithmeticError):
            raise InputError(f"{entry.where} cannot be decided: {reason(error)}") from error
        raise
    return event, tuple(actions)
