"""The events of a record through a fresh Manager: it must come to the recorded actions."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import InputError
from penstock.ledger import decide
from penstock.logbook.reader import Logbook
from penstock.model import Action, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An event on which a fresh Manager decides otherwise than the record says."""

    where: str
    event: Event
    recorded: Sequence[Action]
    replayed: Sequence[Action]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """How many events and actions are the same, up to the first difference or the end."""

    events: int
    actions: int
    first_difference: Difference | None


def replay(logbook: Logbook) -> Replayed:
    """Return what becomes of a record's events, from the first part of its run on."""
    logbook = logbook.whole()
    if logbook.lost:
        raise InputError(
            f"{logbook.paths[0]}: {logbook.lost} events of run {logbook.header.run} could not be "
            "written then, so the others cannot be replayed; take the parts before the gap"
        )
    manager, ledger = logbook.header.manager()
    events = actions = 0
    for entry in logbook:
        try:
            event, decided = decide(manager, ledger, entry.event)
        except KeyError as error:
            raise InputError(f"{entry.where}: no job {error} is there, or has a phase") from error
        if event != entry.event or decided != list(entry.actions):
            difference = Difference(
                where=entry.where,
                event=entry.event,
                recorded=entry.actions,
                replayed=tuple(decided),
            )
            return Replayed(events=events, actions=actions, first_difference=difference)
        events += 1
        actions += len(decided)
    return Replayed(events=events, actions=actions, first_difference=None)
