"""Requests of people about what is known: of a running controller, or of a store alone."""

from collections.abc import Sequence
from dataclasses import replace

from penstock.learn.imported import ImportedApplication
from penstock.live.protocol import messages
from penstock.live.store.rows import Family
from penstock.live.store.write_behind import WriteBehind


def import_knowledge(
    store: WriteBehind,
    applications: Sequence[ImportedApplication],
    now: float,
    io_nodes: int | None = None,
) -> None:
    """Keep what a file says; InputError: some of it cannot be true of this site. Then none is."""
    for one in applications:
        one.check(io_nodes)
    for one in applications:
        family = Family(user=one.user, executable=one.application, nodes=one.nodes)
        known = store.families.known(family)
        imported = one.imported.over(known.imported)
        store.learn(family, replace(known, imported=imported, updated=now))


def forget(store: WriteBehind, message: messages.ForgetApplications) -> int:
    """Remove what is known of a user's applications; return of how many."""
    forgotten = [
        family
        for family in store.families.of(message.user)
        if message.application in (None, family.executable)
        and message.nodes in (None, family.nodes)
    ]
    for family in forgotten:
        store.forget_family(family)
    return len(forgotten)
